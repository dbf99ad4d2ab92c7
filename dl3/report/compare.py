"""Compares two campaigns: which figures changed by more than their noise."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from dl3.report.measures import Figure, figures
from dl3.report.offered import is_alike, is_of_loads
from dl3.report.results import Results

Verdict = Literal["better", "worse", "same", "unclear", "missing", "new"]


NONE = Figure("", "", "", "", "", "", "", "", "", 0.0, 0.0, 0.0, "spread", is_better_high=True)


@dataclass(frozen=True)
class Change:
    """One figure in both campaigns; a figure without a counterpart is missing or new."""

    verdict: Verdict
    old: Figure | None
    new: Figure | None

    @property
    def figure(self) -> Figure:
        """The figure that exists, the later one if both do."""
        return self.new or self.old or NONE

    @property
    def are_bounds(self) -> bool:
        """Whether both are lower bounds only."""
        return bool(self.old and self.new and self.old.is_at_least and self.new.is_at_least)

    @property
    def loads_pps(self) -> tuple[float, float] | None:
        """The loads of both if they are the reason for an unclear verdict."""
        if self.verdict != "unclear" or not (self.old and self.new and is_of_loads(self.old, self.new)):
            return None
        return self.old.load_pps, self.new.load_pps

    @property
    def ratio(self) -> float | None:
        """New / old; None for two bounds and for different loads, whose ratio has no meaning."""
        if self.are_bounds or self.loads_pps:
            return None
        return self.new.value / self.old.value if self.new and self.old and self.old.value else None

    @property
    def is_judged(self) -> bool:
        """Whether it counts towards the outcome."""
        return self.figure.is_judged


@dataclass(frozen=True)
class Comparison:
    """All changes from one campaign to another, and the names of both."""

    old_name: str
    new_name: str
    changes: tuple[Change, ...]

    @property
    def is_worse(self) -> bool:
        """Whether any judged figure got worse or is missing."""
        return any(change.is_judged and change.verdict in ("worse", "missing") for change in self.changes)

    @property
    def has_common(self) -> bool:
        """Whether the two have any question in common."""
        return any(change.old and change.new for change in self.changes)

    def counts(self) -> Counter[str]:
        """The number of judged figures by verdict."""
        return Counter(change.verdict for change in self.changes if change.is_judged)


def verdict(old: Figure, new: Figure) -> Verdict:
    """Changed if the ranges do not overlap; bounds and results at different loads leave the verdict open."""
    if is_of_loads(old, new):
        return "unclear"
    if is_alike(old, new):
        return "same"
    is_higher = new.value > old.value
    lower, bare = (old, "spread") if is_higher else (new, "spread")
    if lower.is_at_least or any(one.is_noisy and one.basis == bare for one in (old, new)):
        return "unclear"
    return "better" if is_higher == new.is_better_high else "worse"


def compare(old: Results, new: Results, old_name: str, new_name: str) -> Comparison:
    """Every figure of both campaigns, in the order of the later one."""
    before = {figure.question: figure for figure in figures(old)}
    after = {figure.question: figure for figure in figures(new)}
    changes = []
    for question, figure in after.items():
        known = before.get(question)
        changes.append(Change(verdict(known, figure) if known else "new", known, figure))
    changes += [Change("missing", figure, None) for question, figure in before.items() if question not in after]
    return Comparison(old_name, new_name, tuple(changes))
