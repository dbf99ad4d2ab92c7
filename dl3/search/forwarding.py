"""Forwarding rates over loads (RFC 2889, 5.1): at each load, at the maximum offered load, and the maximum rate."""

from collections.abc import Callable
from dataclasses import dataclass

from dl3.search.frame_loss import Tried, loads_of
from dl3.search.throughput import Undecided
from dl3.search.trials import RETRIES, T, first_valid


def forwarded_pps(trial: T) -> float:
    """The forwarding rate in frames/s."""
    return trial.offered_pps * (1 - trial.loss_ratio)


@dataclass(frozen=True)
class Rates(Tried[T]):
    """The loads with their forwarding rates."""

    @property
    def at_most_offered(self) -> T:
        """The trial with the maximum offered load; its forwarding rate is FRMOL."""
        return max((trial for _, trial in self.points), key=lambda trial: trial.offered_pps)

    @property
    def most(self) -> T:
        """The trial with the maximum forwarding rate, MFR."""
        return max((trial for _, trial in self.points), key=forwarded_pps)


def find_rates(measure: Callable[[float], T], step: float = 0.1, retries: int = RETRIES) -> Rates[T]:
    """Measure all loads; Undecided if none has a valid trial."""
    found = Rates([(share, first_valid(measure, share, retries)) for share in loads_of(step)])
    if not found.points:
        raise Undecided("no result: the trials of all loads were INVALID, see their reasons")
    return found
