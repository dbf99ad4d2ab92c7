"""Correlates loss with stalls of workers, and stalls with activity on their cores. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dl3.model.evidence import Event, Gap, Loss, Timeline, What
from dl3.model.trial import Trial
from dl3.report.explain.load import load_of

COVERS = 0.5  # of a stall: a thread that had the core for less did not cause it
LEAST_US = 100.0  # minimum length of a stall that may have lost frames if the ring size is unknown
NO_WORKER = -1  # all that was offered
Owner = tuple[What, str]


def span_of(one: Gap | Event | Loss) -> tuple[float, float]:
    """Begin and end, in nanoseconds."""
    return one.at_ns - one.us * 1e3, float(one.at_ns)


def overlap_us(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The overlap of the two; negative: the distance between them."""
    return (min(a[1], b[1]) - max(a[0], b[0])) / 1e3


@dataclass
class Stall:
    """A worker that did not poll, the frames lost meanwhile, and the owner of its core."""

    gap: Gap
    frames: int = 0
    owner: Owner | None = None  # the thread that had the core longest; None: unknown
    n_others: int = 0  # further threads that had it
    owners_us: float = 0.0  # how long all of them had it


@dataclass
class Cause:
    """All stalls of one worker that have the same owner of the core."""

    program: str
    worker: int
    core: int
    owner: Owner | None
    stalls: list[Stall] = field(default_factory=list)

    @property
    def is_elsewhere(self) -> bool:
        """On the other machine of the testbed; all workers of a program run on one machine."""
        return any(stall.gap.is_elsewhere for stall in self.stalls)

    @property
    def frames(self) -> int:
        """Frames lost in all of them."""
        return sum(stall.frames for stall in self.stalls)

    @property
    def worst(self) -> Stall:
        """The one that lost most frames, the longest of those."""
        return max(self.stalls, key=lambda stall: (stall.frames, stall.gap.us))


def losses_of(line: Timeline | None) -> tuple[Loss, ...]:
    """When frames were lost, at the available resolution."""
    if not line or line.losses:
        return line.losses if line else ()
    lost = [sent - received for sent, received in zip(line.sent, line.received, strict=False)]
    ends = ((i + 1) * line.bucket_ns + line.start_ns for i in range(len(lost)))
    return tuple(
        Loss(at_ns=at_ns, us=line.bucket_ns / 1e3, frames=n) for at_ns, n in zip(ends, lost, strict=True) if n > 0
    )


def can_lose(trial: Trial, gap: Gap) -> bool:
    """Whether a stall can overflow a ring: its own for the device, the generator's burst after the stall otherwise."""
    load = load_of(trial, gap.worker if gap.program == "dl3d" else NO_WORKER)
    return gap.us >= (load.holds_us * COVERS if load.ring_frames else LEAST_US)


def shares(loss: Loss, gaps: Iterable[Gap]) -> dict[Gap, float]:
    """How long each of the stalls overlaps a loss.

    The ring may still overflow while a worker catches up, for at most as long as the stall.
    """
    found = {}
    for gap in gaps:
        begin, end = span_of(gap)
        covered_us = overlap_us((begin, end + gap.us * 1e3), span_of(loss))
        if covered_us > 0:
            found[gap] = covered_us
    return found


def gaps_beside(loss: Loss, gaps: Sequence[Gap], first: str, bucket_us: float) -> dict[Gap, int]:
    """How many of the frames were lost in each stall; none if stalls cover less than most of the time.

    Stalls of the program `first` are preferred; those of the other one count only if there are none.
    """
    for is_first in (True, False):
        found = shares(loss, [gap for gap in gaps if (gap.program == first) is is_first])
        covered_us = sum(found.values())
        if found and covered_us >= COVERS * (loss.us - 2 * bucket_us):
            return parted(loss.frames, found)
    return {}


def parted(frames: int, weights: dict[Gap, float]) -> dict[Gap, int]:
    """Frames distributed by weight; the sum is preserved."""
    total, so_far, reported, found = sum(weights.values()), 0.0, 0, {}
    for gap, weight in weights.items():
        so_far += weight
        found[gap] = round(frames * so_far / total) - reported
        reported += found[gap]
    return found


def owners_of(gap: Gap, events: Iterable[Event]) -> dict[Owner, float]:
    """The owners of a worker's core during a stall with their microseconds, the longest first."""
    times: dict[Owner, float] = {}
    for event in events:
        shared_us = overlap_us(span_of(gap), span_of(event))
        if (event.core, event.is_elsewhere) == (gap.core, gap.is_elsewhere) and shared_us > 0:
            owner = (event.what, event.who)
            times[owner] = times.get(owner, 0.0) + shared_us
    return dict(sorted(times.items(), key=lambda one: -one[1]))


def named(stall: Stall, events: Iterable[Event]) -> Stall:
    """The stall with the owner of the core: other threads if they had most of it together, else one interrupt."""
    owners = owners_of(stall.gap, events)
    threads = {owner: us for owner, us in owners.items() if owner[0] == "switch"}
    least_us = COVERS * stall.gap.us
    if threads and sum(threads.values()) >= least_us:
        stall.owner, stall.n_others = next(iter(threads)), len(threads) - 1
        stall.owners_us = sum(threads.values())
    elif owners and next(iter(owners.values())) >= least_us:
        stall.owner, stall.owners_us = next(iter(owners.items()))
    return stall


def stalls_beside(trial: Trial, first: str) -> tuple[list[Stall], int]:
    """The stalls in which frames were lost, and the number lost outside of any known stall."""
    evidence = trial.evidence
    gaps = [gap for gap in evidence.gaps if can_lose(trial, gap)] if evidence else []
    losses = losses_of(trial.timeline)
    finest_us = min((loss.us for loss in losses), default=0.0)
    bucket_us = min(finest_us, trial.timeline.bucket_ns / 1e3) if trial.timeline else finest_us
    found: dict[Gap, Stall] = {}
    n_left = 0
    for loss in losses:
        parts = gaps_beside(loss, gaps, first, bucket_us)
        n_left += loss.frames - sum(parts.values())
        for gap, frames in parts.items():
            found.setdefault(gap, Stall(gap)).frames += frames
    events = evidence.events if evidence else ()
    return [named(stall, events) for stall in found.values()], n_left


def causes_of(stalls: Iterable[Stall]) -> list[Cause]:
    """Stalls grouped by worker and owner, those with the most loss first."""
    found: dict[tuple[object, ...], Cause] = {}
    for stall in stalls:
        gap = stall.gap
        key = (gap.program, gap.worker, gap.core, stall.owner)
        found.setdefault(key, Cause(gap.program, gap.worker, gap.core, stall.owner)).stalls.append(stall)
    return sorted(found.values(), key=lambda cause: (-cause.frames, -cause.worst.gap.us))
