"""Conducts system recovery (RFC 2544, 26.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from dl3.bench.site import Lines
from dl3.bench.stage import Stage, head_of, throughput_of
from dl3.model.answers import Recovery
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial
from dl3.search.recovery import OVERLOAD, RELIEF, recovery_s
from dl3.search.trials import valid
from dl3.trial.order import Order, Surplus

LONGEST_RELIEF_S = 10.0
SHORTEST_RELIEF_S = 1.0


@dataclass(frozen=True)
class Fall:
    """The load falls from the overload to the relief without a gap: a stream of both ends, the other goes on."""

    overload_pps: float
    relief_pps: float
    overload_s: float
    relief_s: float

    def order(self, stage: Stage) -> Order:
        """One trial."""
        course = stage.course
        surplus = Surplus(self.overload_pps - self.relief_pps, self.overload_s)
        seconds = self.overload_s + self.relief_s
        return Order(
            course.streams, stage.job.frame, self.relief_pps, seconds, "recovery", warm_up_s=0.0, surplus=surplus
        )


def fall_of(stage: Stage, throughput: Throughput) -> Fall:
    """From 110 % of the throughput, or what the line carries, to half of the throughput."""
    if throughput.limited_by != "dut":
        raise Fault(
            f"frames of {throughput.frame}: {throughput.dut} cannot be overloaded, its throughput of "
            f"{throughput.pps / 1e6:.3f} Mpps is limited by {throughput.limited_by}: there is no recovery to measure"
        )
    line_pps = Lines.of(stage.course.site.generator, stage.course.streams).most_pps(throughput.mean_bytes)
    overload_pps = min(OVERLOAD * throughput.pps, line_pps or OVERLOAD * throughput.pps)
    seconds = stage.course.seconds
    relief_s = min(max(seconds, SHORTEST_RELIEF_S), LONGEST_RELIEF_S)
    return Fall(overload_pps, RELIEF * throughput.pps, seconds, relief_s)


def measure_recovery(stage: Stage) -> Sequence[Recovery]:
    """The time from the fall of the load to the last lost frame, to a frame of the lower load."""
    throughput = throughput_of(stage)
    fall = fall_of(stage, throughput)
    course, seconds, trials = stage.course, list[float](), list[Trial]()
    n = stage.job.effort.repetitions
    whole_s = fall.overload_s + fall.relief_s
    for i in range(n):
        course.audience.heard_left(throughput.frame, (n - i) * (whole_s + course.trial_s_beside))
        trials.append(valid(lambda _: course.run(fall.order(stage)), 0, "the trial of the overload"))
        seconds.append(recovery_s(trials[-1].last_lost_s, fall.overload_s, whole_s))
    answer = Recovery(
        **head_of(stage, trials[0]),
        overload_pps=fall.overload_pps,
        recovery_pps=fall.relief_pps,
        seconds=tuple(seconds),
    )
    course.keep(answer)
    return (answer,)
