"""A short demo of dl3gen's measurements: the throughput of some frame sizes, then latency at fractions of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dl3.bench.latency import at_load
from dl3.bench.site import Found, ProgressListener, Run
from dl3.bench.throughput import Wanted, find
from dl3.host.noise import Look
from dl3.model.fault import Fault
from dl3.model.trial import Throughput, Trial
from dl3.search.throughput import SearchSettings, Undecided

FRAMES = ("64", "128", "256", "512", "1024", "1518", "imix")
LATENCY_FRAMES = ("64", "512", "imix")
LOADS = (0.1, 0.5, 0.9)
SETTINGS = SearchSettings(resolution=0.05, retries=2)
METHOD: Literal["binary"] = "binary"  # with trials this short, even shorter ones save no time
TRIAL_S = 0.4  # short, because virtual cores pause for a millisecond or two several times a second
WARM_UP_S = 0.1
SEARCH_S = 14.0  # per frame size; unused time goes to the next one. After that a range is accepted
PATIENCE_S = 6.0  # maximum additional time until there is a result
LATENCY_S = 15.0  # maximum total

Clock = Callable[[], float]


class TimeUp(Fault):
    """There is no result in the available time."""


@dataclass
class Hurried(ProgressListener):
    """Accepts a coarse result when time is up, and soon after that ends a search without one; passes on everything
    else.
    """

    listener: ProgressListener
    clock: Clock = time.monotonic
    deadline_s: float = 0.0
    end_s: float = 0.0

    def __post_init__(self) -> None:
        self.end_s = self.clock()

    def allow(self, seconds: float) -> None:
        """Extend the time limit. Unused time carries over; an overrun does not."""
        self.end_s = max(self.end_s, self.clock()) + seconds
        self.deadline_s = self.end_s + PATIENCE_S

    def on_left(self, frame: str, seconds: float) -> None:
        """Limited to the time that is left."""
        self.listener.on_left(frame, min(seconds, max(0.0, self.end_s - self.clock())))

    def is_waiting(self) -> bool:
        """From now on a range is accepted."""
        return self.clock() > self.end_s

    def on_trial(self, trial: Trial) -> None:
        """Checked after each trial, so that no search runs indefinitely."""
        self.listener.on_trial(trial)
        if self.clock() > self.deadline_s:
            raise TimeUp("no result in time: other programs use the two cores; try again when they are free")


def hurried(run: Run) -> tuple[Run, Hurried]:
    """Short trials and a time limit; no noise checks, because they take time as well."""
    clock = Hurried(run.listener)
    return replace(run, seconds=TRIAL_S, warm_up_s=WARM_UP_S, listener=clock, look=Look), clock


def search_all(run: Run, frames: Sequence[str] = FRAMES) -> list[Found]:
    """The throughput of each frame size, a range if time was short. A size without a result is reported and skipped."""
    run, clock = hurried(run)
    found: list[Found] = []
    for frame in frames:
        clock.allow(SEARCH_S)
        try:
            found += find(run, Wanted((frame,), SETTINGS, method=METHOD), frame, 0.0)
        except (TimeUp, Undecided) as fault:
            clock.listener.on_fault(frame, fault)
            continue
        clock.listener.on_result(found[-1])
    return found


def latency_at(run: Run, results: Sequence[Throughput], loads: Sequence[float] = LOADS) -> list[Trial]:
    """One trial per frame size and load, as time allows; the last attempt counts, even if INVALID."""
    (run, clock), trials = hurried(run), []
    clock.allow(LATENCY_S)
    for result in (one for one in results if one.pps and one.frame in LATENCY_FRAMES):
        for load in loads:
            try:
                trials.append(at_load(run, result, load))
            except TimeUp as fault:
                clock.listener.on_fault(result.frame, fault)
                return trials
    return trials
