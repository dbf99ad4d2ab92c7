"""Runs reset tests (RFC 2544, 26.6, RFC 6201) of the device's process and of its port, at half the throughput."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from dl3.bench.site import Run
from dl3.bench.testbed import Testbed, head_of, throughput_of
from dl3.model.fault import Fault, UsageFault
from dl3.model.results import Reset
from dl3.model.trial import Trial
from dl3.search.reset import is_back, trial_that_ends_well
from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES
from dl3.trial.order import Order
from dl3.trial.run import Runner

LOAD = 0.5  # of the throughput: loss is then due to the reset, even on a noisy machine
MORE = 1.05
SHORTEST_S = 2.0
LONGEST_S = 120.0
RATE = "pacing: "  # of the mean rate; times do not depend on it
NO_LINK = ("late: ", RATE)  # without a link nothing can be sent
DOWN = "link: "  # at the end


class NotAskedFor(Fault):
    """A kind of reset for which the user gave no command."""


class Resettable(Protocol):
    """The part of a testbed that is needed here."""

    def reset_process(self) -> None:
        """Kill and restart the process."""

    def reset_port(self) -> None:
        """Set the port down and up."""


@dataclass(frozen=True)
class Outage:
    """From the last frame before to the first frame after the reset, with the number of frames lost."""

    seconds: float
    lost: int
    trial: Trial

    @classmethod
    def of(cls, trial: Trial) -> "Outage":
        """The longest silence, whether its frames were lost, held back or never accepted by the port.

        A silence no longer than the tester's own longest pause is not attributed to the device; then only lost frames
        count.
        """
        run = trial.facts.get("run")
        pause_s = run["longest_gap_us"] / 1e6 if isinstance(run, dict) else 0.0
        is_seen = trial.longest_silence_s > MORE * pause_s
        seconds = trial.longest_silence_s if is_seen else trial.longest_outage_s
        return cls(seconds, trial.account.lost + trial.account.busy, trial)


def without_account(run: Run) -> Run:
    """Trials without checking the device's packet accounting, which restarts with the process."""
    return replace(run, runner=Runner(replace(run.site, dut=None), run.runner.sleep))


def is_down(trial: Trial) -> bool:
    """Whether a link was still down at the end: then the device has not recovered."""
    return any(why.startswith(DOWN) for why in trial.invalid)


def is_usable(trial: Trial) -> bool:
    """Whether the trial is valid except for a link that was down temporarily or until the end."""
    return is_down(trial) or all(why.startswith(NO_LINK if trial.account.busy else RATE) for why in trial.invalid)


def has_come_back(trial: Trial) -> bool:
    """Whether the device was forwarding again before the end.

    Frames that a port without a link never accepted have no number, so the last lost one may be later by all their
    time.
    """
    if is_down(trial):
        return False
    if trial.last_lost_s is None or not trial.asked_pps:
        return is_back(trial.last_lost_s, trial.seconds)
    left_out_s = trial.account.late * max(1, len(trial.streams)) / trial.asked_pps  # of one stream, at most
    return is_back(trial.last_lost_s + left_out_s, trial.seconds)


def outage_in(run: Run, frame: str, pps: float, act: Callable[[], None]) -> Outage:
    """One reset, observed from before to after."""

    def measure(seconds: float) -> Trial:
        for _ in range(1 + RETRIES):
            run.listener.on_left(frame, seconds + run.trial_s_beside)
            order = Order(run.streams, frame, pps, seconds, "reset", warm_up_s=run.warm_up_s)
            trial = run.trial(order, act)
            if is_usable(trial):
                return trial
        raise Undecided(f"no result: the trials of a reset were INVALID, the last because {trial.invalid[0]}")

    seconds = max(run.seconds, SHORTEST_S)
    return Outage.of(trial_that_ends_well(measure, has_come_back, seconds, LONGEST_S))


def measure_one(testbed: Testbed, what: Literal["process", "port"], pps: float, act: Callable[[], None]) -> Reset:
    """All repetitions of one kind of reset."""
    run = without_account(testbed.run)
    outages = [outage_in(run, testbed.job.frame, pps, act) for _ in range(testbed.job.effort.repetitions)]
    result = Reset(
        **head_of(testbed, outages[0].trial),
        what=what,
        offered_pps=pps,
        seconds=tuple(outage.seconds for outage in outages),
        lost=tuple(outage.lost for outage in outages),
    )
    run.keep(result)
    return result


def measure_reset(testbed: Testbed, bed: Resettable | None = None) -> Sequence[Reset]:
    """Both kinds of reset. One that is not possible on this testbed is reported; Fault if neither is possible."""
    bed = bed or testbed.bed
    if bed is None:
        raise UsageFault("this device cannot be reset from here: give a command, or use a device that dl3 starts")
    pps = LOAD * throughput_of(testbed).pps
    results, faults = list[Reset](), list[Fault]()
    kinds: list[tuple[Literal["process", "port"], Callable[[], None]]] = [
        ("process", bed.reset_process),
        ("port", bed.reset_port),
    ]
    for what, act in kinds:
        try:
            results.append(measure_one(testbed, what, pps, act))
        except Fault as fault:
            faults.append(fault)
    if not results:
        raise faults[0]
    for one in faults:
        if not isinstance(one, NotAskedFor):
            testbed.run.listener.on_fault(testbed.job.frame, one)
    return tuple(results)
