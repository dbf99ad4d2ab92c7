"""The longest lossless burst (RFC 2544, 26.4): the length is doubled until frames are lost, then bisected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from dl3.search.trials import RETRIES, T, valid

FIRST = 64  # length of the first burst in frames


@dataclass(frozen=True)
class Reach:
    """The maximum burst length and the resolution of the result, in frames or as a fraction."""

    most: int
    frames: int = 1
    share: float = 0.0
    retries: int = RETRIES

    def is_near(self, low: int, high: int) -> bool:
        """Whether the bounds are close enough together."""
        return high - low <= max(self.frames, int(self.share * low))


@dataclass(frozen=True)
class Burst(Generic[T]):
    """The burst length in frames and its trial; 0 and None if even the shortest burst lost frames."""

    frames: int
    trial: T | None
    is_at_least: bool  # no longer burst was tried


def next_burst(passed: Sequence[int], lost: Sequence[int], most: int) -> int:
    """Length of the next burst: twice the longest that passed, or the midpoint of the bounds."""
    low = max(passed, default=0)
    if lost:
        return (low + min(lost)) // 2
    return min(2 * low or FIRST, most)


def find_burst(measure: Callable[[int], T], reach: Reach) -> Burst[T]:
    """The longest burst that passed, shorter than every burst that lost frames; Undecided if trials stay INVALID."""
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
