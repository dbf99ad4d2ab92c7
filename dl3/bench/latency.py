"""Runs latency trials at fractions of a known throughput."""

from collections.abc import Sequence

from dl3.bench.site import Run
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.trial.order import Order

LOADS = (0.1, 0.5, 0.9)
NO_SHARE = "so no share of it can be offered: look at the trials of its search"
TRIES = 4  # of an INVALID trial


def measure_latency(run: Run, answers: Sequence[Throughput], loads: Sequence[float]) -> Sequence[Trial]:
    """One trial per frame size and load; trials that stay INVALID are included, with their reasons.

    A throughput of 0 has no fractions; this is reported as a fault.
    """
    for answer in (one for one in answers if not one.pps):
        run.listener.on_fault(answer.frame, Fault(f"{answer.dut} has no throughput, {NO_SHARE}"))
    jobs = [(answer, load) for answer in answers if answer.pps for load in loads]
    trials = []
    for i, (answer, load) in enumerate(jobs):
        run.listener.on_left(answer.frame, (len(jobs) - i) * run.trial_s)
        trials.append(at_load(run, answer, load))
    return trials


def at_load(run: Run, answer: Throughput, load: float) -> Trial:
    """At one fraction of the throughput, repeated while it is INVALID."""
    pps = answer.pps * load
    order = Order(run.streams, answer.frame, pps, run.seconds, "latency", load=load, warm_up_s=run.warm_up_s)
    for _ in range(TRIES):
        trial = run.trial(order)
        if not trial.invalid:
            break
    return trial


def is_lesser(answer: Throughput, before: Throughput) -> bool:
    """Whether a result is secondary to another of its campaign: of a looser goal, or over the wire of a later test."""
    is_other = wire_of(answer.facts) != wire_of(before.facts)
    return answer.campaign == before.campaign and (is_other or before.goal_loss_ratio < answer.goal_loss_ratio)


def newest(answers: Sequence[Throughput], dut: str, frames: Sequence[str], wire: str = "") -> list[Throughput]:
    """The latest result of this device in a record for each frame size; with several goals the strictest.

    Results over a different wire are skipped, if both wires are known.
    """
    found: dict[str, Throughput] = {}
    for answer in (one for one in answers if one.dut == dut and (not wire or wire_of(one.facts) in ("", wire))):
        before = found.get(answer.frame)
        if not before or not is_lesser(answer, before):
            found[answer.frame] = answer
    return [found[frame] for frame in frames if frame in found]
