"""Common to all searches: repetition of INVALID trials."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from dl3.search.throughput import Undecided

RETRIES = 3


class Outcome(Protocol):
    """The properties of a trial that a search uses."""

    @property
    def offered_pps(self) -> float: ...

    @property
    def loss_ratio(self) -> float: ...

    @property
    def invalid(self) -> Sequence[str]:
        """Why the trial is not evidence about the device; empty if it is valid."""


T = TypeVar("T", bound=Outcome)
L = TypeVar("L", int, float)


def first_valid(measure: Callable[[L], T], load: L, retries: int = RETRIES) -> T | None:
    """The first valid trial of a load; None if the trial and all retries were INVALID."""
    for _ in range(1 + retries):
        trial = measure(load)
        if not trial.invalid:
            return trial
    return None


def valid(measure: Callable[[L], T], load: L, what: str, retries: int = RETRIES) -> T:
    """The first valid trial of a load; Undecided if there is none."""
    for _ in range(1 + retries):
        trial = measure(load)
        if not trial.invalid:
            return trial
    raise Undecided(f"no result: {what} was INVALID {1 + retries} times, the last because {trial.invalid[0]}")
