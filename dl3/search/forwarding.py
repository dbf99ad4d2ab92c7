"""Forwarding rates over loads (RFC 2889, 5.1): at each, at the most that was offered, and the highest of all."""

from collections.abc import Callable
from dataclasses import dataclass

from dl3.search.frame_loss import Tried, loads_of
from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES, T, first_valid


def forwarded_pps(trial: T) -> float:
    """Frames a second that came back."""
    return trial.offered_pps * (1 - trial.loss_ratio)


@dataclass(frozen=True)
class Rates(Tried[T]):
    """The loads with what is told of them."""

    @property
    def at_most_offered(self) -> T:
        """The trial of the maximum offered load: its forwarding rate is FRMOL."""
        return max((trial for _, trial in self.points), key=lambda trial: trial.offered_pps)

    @property
    def most(self) -> T:
        """The trial of the maximum forwarding rate, MFR."""
        return max((trial for _, trial in self.points), key=forwarded_pps)


def find_rates(measure: Callable[[float], T], step: float = 0.1, retries: int = RETRIES) -> Rates[T]:
    """All loads; Undecided where none has a valid trial."""
    found = Rates([(share, first_valid(measure, share, retries)) for share in loads_of(step)])
    if not found.points:
        raise Undecided("no answer: the trials of all loads were INVALID, see their reasons")
    return found
