"""A demo of what dl3gen measures, in little time: the throughput of some frames, then latency at shares of it."""

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
from dl3.search.throughput import Terms, Undecided

FRAMES = ("64", "128", "256", "512", "1024", "1518", "imix")
LATENCY_FRAMES = ("64", "512", "imix")
LOADS = (0.1, 0.5, 0.9)
TERMS = Terms(resolution=0.05, retries=2)
METHOD: Literal["binary"] = "binary"  # with trials as short as these, shorter ones save nothing
TRIAL_S = 0.4  # short: virtual cores pause for a millisecond or two several times a second
WARM_UP_S = 0.1
SEARCH_S = 14.0  # of each frame size; what one leaves over is for the next. Then a range is enough
PATIENCE_S = 6.0  # more, at most, until there is one
LATENCY_S = 15.0  # at most, all together

Clock = Callable[[], float]


class TimeUp(Fault):
    """There is no answer in the time that there is."""


@dataclass
class Hurried(ProgressListener):
    """Has a coarse answer taken when time is up, ends what has none soon after; passes all else on."""

    listener: ProgressListener
    clock: Clock = time.monotonic
    deadline_s: float = 0.0
    end_s: float = 0.0

    def __post_init__(self) -> None:
        self.end_s = self.clock()

    def allow(self, seconds: float) -> None:
        """So much more than until now; what was left is not lost, and what was taken too much is forgiven."""
        self.end_s = max(self.end_s, self.clock()) + seconds
        self.deadline_s = self.end_s + PATIENCE_S

    def on_left(self, frame: str, seconds: float) -> None:
        """Never more than there is."""
        self.listener.on_left(frame, min(seconds, max(0.0, self.end_s - self.clock())))

    def is_waiting(self) -> bool:
        """A range is enough from now on."""
        return self.clock() > self.end_s

    def on_trial(self, trial: Trial) -> None:
        """The moment to look at the clock: nobody waits for ever."""
        self.listener.on_trial(trial)
        if self.clock() > self.deadline_s:
            raise TimeUp("no answer in time: other programs use the two cores; try again when they are free")


def hurried(run: Run) -> tuple[Run, Hurried]:
    """Short trials, someone who looks at the clock, and nobody who looks at the machine: that takes time too."""
    clock = Hurried(run.listener)
    return replace(run, seconds=TRIAL_S, warm_up_s=WARM_UP_S, listener=clock, look=Look), clock


def search_all(run: Run, frames: Sequence[str] = FRAMES) -> list[Found]:
    """The throughput of each, a range where time was short; one without any answer is told of and left out."""
    run, clock = hurried(run)
    found: list[Found] = []
    for frame in frames:
        clock.allow(SEARCH_S)
        try:
            found += find(run, Wanted((frame,), TERMS, method=METHOD), frame, 0.0)
        except (TimeUp, Undecided) as fault:
            clock.listener.on_fault(frame, fault)
            continue
        clock.listener.on_answer(found[-1])
    return found


def latency_at(run: Run, answers: Sequence[Throughput], loads: Sequence[float] = LOADS) -> list[Trial]:
    """A trial for some frames and each load, as far as time allows; the last try counts, even when it is INVALID."""
    (run, clock), trials = hurried(run), []
    clock.allow(LATENCY_S)
    for answer in (one for one in answers if one.pps and one.frame in LATENCY_FRAMES):
        for load in loads:
            try:
                trials.append(at_load(run, answer, load))
            except TimeUp as fault:
                clock.listener.on_fault(answer.frame, fault)
                return trials
    return trials
