"""Runs the system recovery test (RFC 2544, 26.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from dl3.bench.testbed import Most, Testbed, head_of, throughput_of
from dl3.model.results import Recovery
from dl3.model.stream import shares
from dl3.model.trial import Throughput, Trial
from dl3.search.recovery import OVERLOAD, RELIEF, recovery_s
from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES
from dl3.trial.order import Order, Surplus

LONGEST_RELIEF_S = 10.0
SHORTEST_RELIEF_S = 1.0


@dataclass(frozen=True)
class Fall:
    """The load drops from overload to relief without a gap: the surplus of each stream ends, the rest continues."""

    overload_pps: float
    relief_pps: float
    overload_s: float
    relief_s: float

    def order(self, testbed: Testbed) -> Order:
        """One trial."""
        run = testbed.run
        surplus = Surplus(self.overload_pps - self.relief_pps, self.overload_s)
        seconds = self.overload_s + self.relief_s
        return Order(
            run.streams, testbed.job.frame, self.relief_pps, seconds, "recovery", warm_up_s=0.0, surplus=surplus
        )


def overload_of(throughput: Throughput, most: Most) -> float:
    """110 % of the throughput, or the line rate; Undecided immediately if the tester cannot overload the device."""
    wanted_pps = OVERLOAD * throughput.pps
    if throughput.limited_by == "dut" and (most.limit == "line" or wanted_pps <= most.pps):
        return min(wanted_pps, most.pps)
    top = {"line": "what the line carries,", "asked": "what was asked for,"}.get(
        throughput.limited_by, "its ceiling of"
    )
    top_pps = throughput.ended_pps if throughput.limited_by == "asked" else most.pps
    if wanted_pps <= top_pps:  # the tester is faster now than during the throughput search
        raise Undecided(
            f"not applicable: frames of {throughput.frame}: the tester cannot overload {throughput.dut} "
            f"(its limit is not known: at least {throughput.pps / 1e6:.3f} Mpps)"
        )
    raise Undecided(
        f"not applicable: frames of {throughput.frame}: the tester cannot overload {throughput.dut} "
        f"({OVERLOAD:.0%} of {throughput.pps / 1e6:.3f} Mpps is above {top} {top_pps / 1e6:.3f} Mpps)"
    )


def fall_of(testbed: Testbed, throughput: Throughput) -> Fall:
    """From 110 % of the throughput, or the line rate, to half the throughput."""
    overload_pps = overload_of(throughput, Most.of(testbed.run, testbed.job.frame))
    seconds = testbed.run.seconds
    relief_s = min(max(seconds, SHORTEST_RELIEF_S), LONGEST_RELIEF_S)
    return Fall(overload_pps, RELIEF * throughput.pps, seconds, relief_s)


def overload(testbed: Testbed, fall: Fall) -> Trial:
    """The first valid trial in which the generator skipped no frame; otherwise the one with the fewest skipped."""
    trials: list[Trial] = []
    while len(trials) <= RETRIES and not any(is_exact(trial) for trial in trials):
        trials.append(testbed.run.trial(fall.order(testbed)))
    usable = [trial for trial in trials if not trial.invalid]
    if not usable:
        raise Undecided(
            f"no result: the trial of the overload was INVALID {len(trials)} times, the last because "
            f"{trials[-1].invalid[0]}"
        )
    return min(usable, key=lambda trial: trial.account.late)


def is_exact(trial: Trial) -> bool:
    """Whether due times follow from frame numbers: skipped frames have no number."""
    return not trial.invalid and not trial.account.late


def last_lost_s(testbed: Testbed, fall: Fall, trial: Trial) -> float | None:
    """Latest possible due time of the last lost frame: as if all skipped frames preceded it in its stream."""
    if trial.last_lost_s is None:
        return None
    return trial.last_lost_s + trial.account.late / (fall.relief_pps * min(shares(testbed.run.streams)))


def measure_recovery(testbed: Testbed) -> Sequence[Recovery]:
    """The time from the load reduction to the last lost frame, exact to one frame of the lower load."""
    throughput = throughput_of(testbed)
    fall = fall_of(testbed, throughput)
    run, seconds, trials = testbed.run, list[float](), list[Trial]()
    n = testbed.job.effort.repetitions
    whole_s = fall.overload_s + fall.relief_s
    for i in range(n):
        run.listener.on_left(throughput.frame, (n - i) * (whole_s + run.trial_s_beside))
        trials.append(overload(testbed, fall))
        seconds.append(recovery_s(last_lost_s(testbed, fall, trials[-1]), fall.overload_s, whole_s))
    result = Recovery(
        **head_of(testbed, trials[0]),
        overload_pps=fall.overload_pps,
        recovery_pps=fall.relief_pps,
        seconds=tuple(seconds),
        is_at_most=any(trial.account.late for trial in trials),
    )
    run.keep(result)
    return (result,)
