"""Loss over load, in descending steps until two consecutive loads lost nothing (RFC 2544, 26.3), and at given loads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES, T, first_valid

CLEAN = 2  # number of consecutive lossless loads that end the test


@dataclass(frozen=True)
class Tried(Generic[T]):
    """Loads as fractions of the maximum, in descending order, each with its trial; None if every trial was INVALID."""

    loads: Sequence[tuple[float, T | None]]

    @property
    def points(self) -> Sequence[tuple[float, T]]:
        """The loads that have a valid trial."""
        return [(share, trial) for share, trial in self.loads if trial is not None]

    @property
    def invalid_shares(self) -> Sequence[float]:
        """The loads that have none."""
        return [share for share, trial in self.loads if trial is None]


def loads_of(step: float) -> list[float]:
    """Fractions of the maximum from 1 down to the last one above 0; `step` is at most 0.1."""
    assert 0 < step <= 0.1, "RFC 2544 wants steps of 10 % or less"  # noqa: S101
    return [1 - i * step for i in range(round(1 / step)) if 1 - i * step > step / 2]


def is_done(trials: Sequence[T | None]) -> bool:
    """Whether the last two loads lost nothing; a load without a valid trial does not count."""
    newest = trials[-CLEAN:]
    return len(newest) == CLEAN and all(trial is not None and not trial.loss_ratio for trial in newest)


def find_losses(
    measure: Callable[[float], T], step: float = 0.1, retries: int = RETRIES, given: Sequence[float] = ()
) -> Tried[T]:
    """Measure the loads until the end condition is met, then those that are given, of which the ones above the maximum
    cannot be; Undecided if none has a valid trial.
    """
    trials: list[T | None] = []
    shares = loads_of(step)
    for share in shares:
        trials.append(first_valid(measure, share, retries))
        if is_done(trials):
            break
    tried = dict(zip(shares, trials, strict=False))
    for share in given:
        if share not in tried:
            tried[share] = first_valid(measure, share, retries) if share <= 1 else None
    found = Tried(sorted(tried.items(), key=lambda one: -one[0]))
    if not found.points:
        raise Undecided("no result: the trials of all loads were INVALID, see their reasons")
    return found
