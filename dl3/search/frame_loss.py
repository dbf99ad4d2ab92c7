"""Loss over load, downwards in steps until two loads in a row lost nothing (RFC 2544, 26.3)."""

from collections.abc import Callable, Sequence

from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES, T, first_valid

CLEAN = 2  # loads in a row without loss, then it ends


def loads_of(step: float) -> list[float]:
    """Shares of the most, from all of it down to the last that is above nothing; `step` is at most 0.1."""
    assert 0 < step <= 0.1, "RFC 2544 wants steps of 10 % or less"  # noqa: S101
    return [1 - i * step for i in range(round(1 / step)) if 1 - i * step > step / 2]


def is_done(trials: Sequence[T | None]) -> bool:
    """Whether the last two loads lost nothing; one that stayed INVALID is no such load."""
    newest = trials[-CLEAN:]
    return len(newest) == CLEAN and all(trial is not None and not trial.loss_ratio for trial in newest)


def find_losses(measure: Callable[[float], T], step: float = 0.1, retries: int = RETRIES) -> Sequence[tuple[float, T]]:
    """Each load (share of the most) with its trial; those that stayed INVALID are left out."""
    trials: list[T | None] = []
    shares = loads_of(step)
    for share in shares:
        trials.append(first_valid(measure, share, retries))
        if is_done(trials):
            break
    found = [(share, trial) for share, trial in zip(shares, trials, strict=False) if trial is not None]
    if not found:
        raise Undecided("no answer: the trials of all loads were INVALID, see their reasons")
    return found
