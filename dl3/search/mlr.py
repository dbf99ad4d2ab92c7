"""Throughput for several loss ratios in one search: MLRsearch (RFC 9971), with the package of its authors.

The package chooses loads and durations. Two rules are added here: INVALID trials are repeated and never passed to it,
and without an exceed ratio, no rate is reported if a trial at that rate or above exceeded the goal. Its clock has no
influence: the same trials lead to the same loads, so a search can be replayed from a record. The package adds up
durations, so it is given whole milliseconds, whose sums are exact.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch.search_goal_tuple import SearchGoalTuple

from dl3.model import durations
from dl3.model.trial import Limit
from dl3.search.throughput import Bounds, M, SearchResult, Undecided, given_up, is_enough

NEVER = 1e9  # disables the package's own time limit; `Goals.longest_s` limits trial time instead
MS = 0.001
SLACK = 1e-9  # tolerance for rounding
MOST_FINALS = 100  # per goal, before a search is abandoned

Measure = Callable[[float, float], M]  # packets/s, seconds


@dataclass(frozen=True)
class Goals:
    """The goals of a search, in the terms of RFC 9971. All goals share every attribute except the loss ratio."""

    loss_ratios: tuple[float, ...] = (0.0,)
    exceed_ratio: float = 0.0  # share of a rate's trial time allowed to exceed the goal
    resolution: float = 0.005  # relative goal width
    seconds: float = 2.0  # goal final trial duration
    trials: int = 1  # final trials per rate: goal duration sum / goal final trial duration
    retries: int = 3  # maximum repetitions of an INVALID trial; is_enough() may end them earlier

    def __post_init__(self) -> None:
        assert self.loss_ratios, "there is a goal"  # noqa: S101
        assert len(set(self.loss_ratios)) == len(self.loss_ratios), "each goal is named once"  # noqa: S101
        assert all(0 <= ratio < 1 for ratio in self.loss_ratios), "a goal is a share"  # noqa: S101
        assert 0 <= self.exceed_ratio < 1, "an exceed ratio is a share"  # noqa: S101
        assert 1e-6 <= self.resolution < 1, "a resolution is a share"  # noqa: S101
        assert self.seconds >= MS, "a trial takes time"  # noqa: S101
        assert self.trials >= 1, "a rate is tried at least once"  # noqa: S101
        assert self.retries >= 0, "retries are counted"  # noqa: S101

    @property
    def n_trials(self) -> int:
        """Number of final trials per rate: at least enough for the exceed ratio to tolerate one bad trial."""
        return durations.n_finals(self.trials, self.exceed_ratio)

    @property
    def first_s(self) -> float:
        """Goal initial trial duration."""
        return durations.first_s(self.seconds)

    @property
    def n_preceding(self) -> int:
        """Number of coarser, shorter targets before the final one."""
        return 2 if durations.has_middle(self.seconds) else 1

    @property
    def longest_s(self) -> float:
        """Maximum trial time: a search that takes longer ends without a result."""
        return MOST_FINALS * self.n_trials * self.seconds * len(self.loss_ratios)

    @property
    def likely_s(self) -> float:
        """Expected trial time on a steady device: both bounds of each goal at full duration, and the short trials
        before.
        """
        return len(self.loss_ratios) * (self.n_trials * self.seconds + 6 * self.first_s)

    def of_package(self) -> SearchGoalTuple:
        """The package's goals, one per loss ratio, with every attribute set."""
        return SearchGoalTuple(tuple(self._of_package(ratio) for ratio in self.loss_ratios))

    def _of_package(self, ratio: float) -> SearchGoal:
        return SearchGoal(
            loss_ratio=ratio,
            exceed_ratio=self.exceed_ratio,
            relative_width=self.resolution,
            initial_trial_duration=ms_of(self.first_s),
            final_trial_duration=ms_of(self.seconds),
            duration_sum=self.n_trials * ms_of(self.seconds),
            preceding_targets=self.n_preceding,
            expansion_coefficient=2,
            fail_fast=False,
        )


def ms_of(seconds: float) -> int:
    """Whole milliseconds, at least one."""
    return max(1, round(seconds / MS))


@dataclass(frozen=True)
class Made(Generic[M]):
    """A trial with its requested rate and duration."""

    asked_pps: float
    seconds: float
    trial: M


@dataclass
class Measurer(AbstractMeasurer, Generic[M]):
    """Runs trials on behalf of the package and keeps them all."""

    trial: Measure[M]
    bounds: Bounds
    goals: Goals
    report: Callable[[float], None]
    known: M | None
    made: list[Made[M]] = field(default_factory=list)
    behind: set[float] = field(default_factory=set)  # rates that the generator did not reach

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Return one result to the package: of a valid trial, or of a rate that was too high for the generator.

        Takes milliseconds and packets/s.
        """
        self._check_time()
        tries = self._try(intended_load, max(1, round(intended_duration)) * MS)
        self.report(max(self.goals.likely_s - self.spent_s, self.goals.seconds))
        if not tries[-1].invalid:
            return result_of(tries[-1].loss_ratio, intended_load, intended_duration)
        given_up(intended_load, tries)
        self.behind.add(intended_load)
        reached = max(trial.offered_pps for trial in tries)
        too_much = min(1.0, max(self.goals.loss_ratios) + self.goals.resolution)
        # Regardless of other trials at this rate, it must fail.
        weight = 2 * self.goals.n_trials * ms_of(self.goals.seconds) / (1 - self.goals.exceed_ratio)
        return result_of(max(1 - reached / intended_load, too_much), intended_load, intended_duration, weight)

    @property
    def spent_s(self) -> float:
        """Total trial time so far."""
        return sum(made.seconds for made in self.made)

    def _try(self, pps: float, seconds: float) -> tuple[M, ...]:
        """Repeat a trial until it is valid or the retries are used up."""
        if self.known and pps == self.bounds.high_pps:
            known, self.known = self.known, None
            self.made.append(Made(pps, seconds, known))
            return (known,)
        tries: list[M] = []
        while True:
            tries.append(self.trial(pps, seconds))
            self.made.append(Made(pps, seconds, tries[-1]))
            n_invalid = sum(1 for made in self.made if made.trial.invalid)
            if not tries[-1].invalid or is_enough(tries[-1], len(tries), n_invalid, self.goals.retries):
                return tuple(tries)

    def _check_time(self) -> None:
        if self.spent_s > self.goals.longest_s:
            raise Undecided(
                f"no result: {len(self.made)} trials of {self.spent_s:,.0f} s in all did not settle it, the device "
                "behaves differently each time: make trials longer, or allow some of them to lose (exceed ratio)"
            )


def result_of(loss_ratio: float, pps: float, ms: float, weight_ms: float | None = None) -> MeasurementResult:
    """A result with exactly this loss ratio, weighted by its duration or by `weight_ms`."""
    lost, offered = loss_ratio.as_integer_ratio()
    return MeasurementResult(
        intended_duration=ms,
        intended_load=pps,
        offered_count=offered,
        loss_count=lost,
        offered_duration=ms,
        duration_with_overheads=weight_ms or ms,
    )


def finals(made: Sequence[Made[M]], seconds: float) -> dict[float, list[M]]:
    """Valid full-length trials by requested rate, in descending order."""
    found: dict[float, list[M]] = {}
    for one in sorted(made, key=lambda one: -one.asked_pps):
        if ms_of(one.seconds) >= ms_of(seconds) and not one.trial.invalid:
            found.setdefault(one.asked_pps, []).append(one.trial)
    return found


@dataclass(frozen=True)
class Rate(Generic[M]):
    """The rate of a result and the trial it is based on."""

    best: M
    effective_loss: float  # of the worst trial that the exceed ratio does not exclude


def rate_below(made: Sequence[Made[M]], ratio: float, low_pps: float, goals: Goals) -> Rate[M] | None:
    """The package's lower bound, or the next lower rate that our rules allow.

    Offered rates differ slightly from requested rates; the result must be below every offered rate that lost frames.
    """
    lossy = [one.trial.offered_pps for one in made if not one.trial.invalid and one.trial.loss_ratio > ratio]
    limit = math.inf if goals.exceed_ratio else min(lossy, default=math.inf)
    for pps, trials in finals(made, goals.seconds).items():
        good = [trial for trial in trials if trial.loss_ratio <= ratio]
        is_tried = goals.exceed_ratio or len(good) >= goals.n_trials
        best = min(good, key=lambda trial: trial.offered_pps, default=None)
        if pps <= low_pps and best and is_tried and best.offered_pps < limit:
            return Rate(best, effective_loss([trial.loss_ratio for trial in trials], goals))
    return None


def effective_loss(losses: Sequence[float], goals: Goals) -> float:
    """The loss ratio used for RFC 9971's conditional throughput: a quantile over the full-length trials."""
    n = max(goals.n_trials, len(losses))
    rank = math.ceil(n * (1 - goals.exceed_ratio) - SLACK)
    return sorted(losses)[min(rank, len(losses)) - 1]


def too_high(measurer: Measurer[M], ratio: float, pps: float, high: float | None) -> float | None:
    """The package's upper bound if the device set it, else the lowest rate above `pps` at which a valid trial missed
    the goal.

    None if there is no such trial: a rate at which the generator was behind is not evidence about the device.
    """
    if high and high not in measurer.behind:
        return max(pps, high)  # the offered rate may be higher than the requested one
    valid = [one for one in measurer.made if not one.trial.invalid and one.trial.offered_pps > pps]
    missed = [max(pps, one.asked_pps) for one in valid if one.trial.loss_ratio > ratio]
    return min(missed, default=None)


def search_result(measurer: Measurer[M], ratio: float, bounds: tuple[float | None, float | None]) -> SearchResult[M]:
    """The result for one goal, from the package's lower and upper bounds. Trial counts cover the whole search."""
    made, goals, (low, high) = measurer.made, measurer.goals, bounds
    rate = rate_below(made, ratio, low, goals) if low else None
    pps = rate.best.offered_pps if rate else 0.0
    limit: Limit = "generator" if high in measurer.behind else "dut"
    return SearchResult(
        pps=pps,
        upper_pps=too_high(measurer, ratio, pps, high),
        ended_pps=max(pps, high or measurer.bounds.high_pps),
        limited_by=limit if high else measurer.bounds.high_is,
        best=rate.best if rate else None,
        n_trials=len(made),
        n_invalid=sum(1 for one in made if one.trial.invalid),
        conditional_pps=pps * (1 - rate.effective_loss) if rate else 0.0,
    )


def find_throughputs(
    measure: Measure[M],
    bounds: Bounds,
    goals: Goals | None = None,
    report: Callable[[float], None] | None = None,
    known: M | None = None,
) -> tuple[SearchResult[M], ...]:
    """One result per goal, in the same order. `bounds` are two different rates. Raises Undecided.

    Before each trial except the first, `report` is called with an estimate of the remaining trial time in seconds.
    `known` is an earlier valid trial at the upper bound, used in place of the first trial.
    """
    goals = goals or Goals()
    measurer = Measurer(measure, bounds, goals, report or (lambda _: None), known)
    config = Config(
        goals=goals.of_package(),
        max_load=bounds.high_pps,
        min_load=bounds.low_pps,
        search_duration_max=NEVER,
        warmup_duration=0.0,
    )
    found = MultipleLossRatioSearch(config=config).search(measurer)
    measurer.report(0.0)
    results = [found[goal] for goal in config.goals]
    both = [(result.relevant_lower_bound, result.relevant_upper_bound) for result in results]
    brackets = [(float(low) if low else None, float(high) if high else None) for low, high in both]
    return tuple(search_result(measurer, *one) for one in zip(goals.loss_ratios, brackets, strict=True))
