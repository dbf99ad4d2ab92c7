"""The longest burst of which nothing is lost (RFC 2544, 26.4): doubled until one loses, then halved in between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from dl3.search.trials import RETRIES, T, valid

FIRST = 64  # frames of the first burst


@dataclass(frozen=True)
class Reach:
    """How long bursts may be, and how exact the answer: within so many frames, or so great a share of them."""

    most: int
    frames: int = 1
    share: float = 0.0
    retries: int = RETRIES

    def is_near(self, low: int, high: int) -> bool:
        """Whether an answer between them is exact enough."""
        return high - low <= max(self.frames, int(self.share * low))


@dataclass(frozen=True)
class Burst(Generic[T]):
    """So many frames, and the trial; 0 frames and no trial where even the shortest lost some."""

    frames: int
    trial: T | None
    is_at_least: bool  # no longer one was tried


def next_burst(passed: Sequence[int], lost: Sequence[int], most: int) -> int:
    """How long the next one is: twice the longest that passed, or in the middle of both."""
    low = max(passed, default=0)
    if lost:
        return (low + min(lost)) // 2
    return min(2 * low or FIRST, most)


def find_burst(measure: Callable[[int], T], reach: Reach) -> Burst[T]:
    """The longest burst that passed, shorter than each that lost; Undecided where trials stay INVALID."""
    passed: dict[int, T] = {}
    lost: list[int] = []
    while True:
        frames = next_burst([*passed], lost, reach.most)
        trial = valid(measure, frames, f"a burst of {frames:,} frames", reach.retries)
        if trial.loss_ratio:
            lost.append(frames)
        else:
            passed[frames] = trial
        low = max(passed, default=0)
        if low == reach.most:
            return Burst(low, passed[low], is_at_least=True)
        if lost and (reach.is_near(low, min(lost)) or min(lost) - low <= 1):
            return Burst(low, passed.get(low), is_at_least=False)
