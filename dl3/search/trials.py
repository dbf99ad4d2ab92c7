"""What all searches share: repeating a trial that is INVALID."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from dl3.search.throughput import Undecided

RETRIES = 3


class Outcome(Protocol):
    """What a search has to know of a trial."""

    @property
    def offered_pps(self) -> float: ...

    @property
    def loss_ratio(self) -> float: ...

    @property
    def invalid(self) -> Sequence[str]:
        """Why it says nothing about the device; empty when it is valid."""


T = TypeVar("T", bound=Outcome)
L = TypeVar("L", int, float)


def first_valid(measure: Callable[[L], T], load: L, retries: int = RETRIES) -> T | None:
    """The first trial of a load that is valid, None when as many as are allowed were not."""
    for _ in range(1 + retries):
        trial = measure(load)
        if not trial.invalid:
            return trial
    return None


def valid(measure: Callable[[L], T], load: L, what: str, retries: int = RETRIES) -> T:
    """The same; Undecided where there is none."""
    for _ in range(1 + retries):
        trial = measure(load)
        if not trial.invalid:
            return trial
    raise Undecided(f"no answer: {what} was INVALID {1 + retries} times, the last because {trial.invalid[0]}")
