"""Shorter trials where the generator's core is taken too often for long ones: how long, how many, which one counts. Pure.

A trial that does not count because of stalls is replaced by several shorter ones, short enough that most of them fall
between two stalls. The next trials of the same run begin with that length, until one group of them saw no stall.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Protocol, TypeVar

SHORTEST_S = 0.02
MOST_S = 0.5  # of the length that was disturbed
BETWEEN = 0.25  # of the mean time between two stalls: three of four such trials are not disturbed
WANTED = 5  # shorter trials that count
MOST_TRIES = 15
HOPELESS = 6  # disturbed trials in a row, as short as possible
FADING = 0.5  # weight of earlier observations when a new trial is ordered


class Disturbed(Protocol):
    """The properties of a trial that matter here."""

    @property
    def seconds(self) -> float: ...

    @property
    def asked_pps(self) -> float: ...

    @property
    def received_pps(self) -> float: ...

    @property
    def loss_ratio(self) -> float: ...

    @property
    def invalid(self) -> Sequence[str]: ...

    @property
    def is_stalled(self) -> bool:
        """INVALID only because of stalls."""

    @property
    def n_stalls(self) -> float: ...


T = TypeVar("T", bound=Disturbed)


def shorter_s(ordered_s: float, n_stalls: float, observed_s: float) -> float:
    """The length of trials of which most fall between two stalls, in whole milliseconds."""
    between_s = observed_s / n_stalls if n_stalls else ordered_s
    wanted_s = min(MOST_S * ordered_s, BETWEEN * between_s)
    return round(min(max(wanted_s, SHORTEST_S), ordered_s), 3)


def chosen(trials: Sequence[T]) -> T:
    """The trial that stands for a group: with a rate the one that lost most, else the one with the median rate."""
    if trials[0].asked_pps:
        return max(trials, key=lambda trial: trial.loss_ratio)
    middle = median_low(trial.received_pps for trial in trials)
    return next(trial for trial in trials if trial.received_pps == middle)


@dataclass
class Lengths:
    """The stalls seen so far, and whether trials are shortened now."""

    is_short: bool = False
    n_stalls: float = 0.0
    observed_s: float = 0.0

    def note(self, trial: Disturbed) -> None:
        """Take the stalls of a trial into account."""
        self.n_stalls += trial.n_stalls
        self.observed_s += trial.seconds

    def measure(self, trial: Callable[[float], T], ordered_s: float, goals: Sequence[float] = ()) -> T:
        """One trial of the ordered length, or the one that stands for several shorter ones.

        A trial that is INVALID for another reason than stalls ends the group: shorter ones would be too. So does one
        that lost more than all of the goals.
        """
        self.n_stalls, self.observed_s = self.n_stalls * FADING, self.observed_s * FADING
        if not self.is_short or ordered_s <= SHORTEST_S:
            made = trial(ordered_s)
            self.note(made)
            if not made.is_stalled or ordered_s <= SHORTEST_S:
                return made
        return self._group(trial, ordered_s, goals)

    def _group(self, trial: Callable[[float], T], ordered_s: float, goals: Sequence[float]) -> T:
        tries: list[T] = []
        good: list[T] = []
        n_hopeless = 0
        while len(good) < WANTED and len(tries) < MOST_TRIES and n_hopeless < HOPELESS:
            seconds = shorter_s(ordered_s, self.n_stalls, self.observed_s)
            newest = trial(seconds)
            self.note(newest)
            tries.append(newest)
            n_hopeless = n_hopeless + 1 if newest.is_stalled and seconds <= SHORTEST_S else 0
            if newest.invalid and not newest.is_stalled:
                return newest
            if not newest.invalid:
                good.append(newest)
                if goals and newest.loss_ratio > max(goals):
                    break
        self.is_short = not good or any(one.n_stalls for one in tries)
        return chosen(good) if good else tries[-1]
