"""Runs latency trials at fractions of a known throughput."""

from collections.abc import Sequence

from dl3.bench.site import Run
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.trial.order import Order

LOADS = (0.1, 0.5, 0.9)
NO_SHARE = "so no share of it can be offered: look at the trials of its search"
TRIES = 4  # of an INVALID trial


def measure_latency(run: Run, results: Sequence[Throughput], loads: Sequence[float]) -> Sequence[Trial]:
    """One trial per frame size and load; trials that stay INVALID are included, with their reasons.

    A throughput of 0 has no fractions; this is reported as a fault.
    """
    for result in (one for one in results if not one.pps):
        run.listener.on_fault(result.frame, Fault(f"{result.dut} has no throughput, {NO_SHARE}"))
    jobs = [(result, load) for result in results if result.pps for load in loads]
    trials = []
    for i, (result, load) in enumerate(jobs):
        run.listener.on_left(result.frame, (len(jobs) - i) * run.trial_s)
        trials.append(at_load(run, result, load))
    return trials


def at_load(run: Run, result: Throughput, load: float) -> Trial:
    """At one fraction of the throughput, repeated while it is INVALID."""
    pps = result.pps * load
    order = Order(run.streams, result.frame, pps, run.seconds, "latency", load=load, warm_up_s=run.warm_up_s)
    for _ in range(TRIES):
        trial = run.trial(order)
        if not trial.invalid:
            break
    return trial


def is_lesser(result: Throughput, before: Throughput) -> bool:
    """Whether a result is secondary to another of its campaign: of a looser goal, or over the wire of a later test."""
    is_other = wire_of(result.facts) != wire_of(before.facts)
    return result.campaign == before.campaign and (is_other or before.goal_loss_ratio < result.goal_loss_ratio)


def newest(results: Sequence[Throughput], dut: str, frames: Sequence[str], wire: str = "") -> list[Throughput]:
    """The latest result of this device in a record for each frame size; with several goals the strictest.

    Results over a different wire are skipped, if both wires are known.
    """
    found: dict[str, Throughput] = {}
    for result in (one for one in results if one.dut == dut and (not wire or wire_of(one.facts) in ("", wire))):
        before = found.get(result.frame)
        if not before or not is_lesser(result, before):
            found[result.frame] = result
    return [found[frame] for frame in frames if frame in found]
