"""Throughput for several loss ratios in one search: MLRsearch (RFC 9971), by the package of its authors.

The package chooses loads and durations; the law of this house stands beside it: INVALID trials are made again and
never shown to it, and without an exceed ratio no rate is answered at or above which any trial lost more than allowed.
Its clock has no say: the same trials lead to the same loads, so that a search can be replayed from a record.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from MLRsearch.search_goal_tuple import SearchGoalTuple

from dl3.search.throughput import Answer, Bounds, M, Undecided, given_up

NEVER_S = 1e9  # for the package's own clock; `Goals.longest_s` counts trials instead
N_PRECEDING = 2  # coarser and shorter targets before the final one
SHORTEST_S = 0.1
LONGEST_FIRST_S = 1.0
FIRST_SHARE = 0.1  # of the final duration: how long the first trials are
MOST_FINALS = 100  # for each goal, before a search is given up

Measure = Callable[[float, float], M]  # packets/s, seconds


@dataclass(frozen=True)
class Goals:
    """What is searched for, in the words of RFC 9971; all goals share everything but the loss ratio."""

    loss_ratios: tuple[float, ...] = (0.0,)
    exceed_ratio: float = 0.0  # share of a rate's trial time that may lose more than the goal
    resolution: float = 0.005  # goal width, relative
    seconds: float = 2.0  # goal final trial duration
    trials: int = 1  # of that length, which decide about a rate: goal duration sum / goal final trial duration
    retries: int = 3  # of INVALID trials, each time

    def __post_init__(self) -> None:
        assert self.loss_ratios, "there is a goal"  # noqa: S101
        assert len(set(self.loss_ratios)) == len(self.loss_ratios), "each goal is named once"  # noqa: S101
        assert all(0 <= ratio < 1 for ratio in self.loss_ratios), "a goal is a share"  # noqa: S101
        assert 0 <= self.exceed_ratio < 1, "an exceed ratio is a share"  # noqa: S101
        assert 1e-6 <= self.resolution < 1, "a resolution is a share"  # noqa: S101
        assert self.seconds > 0, "a trial takes time"  # noqa: S101
        assert self.trials >= 1, "a rate is tried at least once"  # noqa: S101
        assert self.retries >= 0, "retries are counted"  # noqa: S101

    @property
    def n_trials(self) -> int:
        """Final trials that decide about a rate: so many at least that an exceed ratio can forgive one."""
        return max(self.trials, math.floor(1 / self.exceed_ratio) + 1 if self.exceed_ratio else 1)

    @property
    def first_s(self) -> float:
        """Goal initial trial duration."""
        return min(self.seconds, max(SHORTEST_S, min(LONGEST_FIRST_S, FIRST_SHARE * self.seconds)))

    @property
    def longest_s(self) -> float:
        """Of trials: a search that takes longer ends without an answer."""
        return MOST_FINALS * self.n_trials * self.seconds * len(self.loss_ratios)

    @property
    def likely_s(self) -> float:
        """Of trials, on a device that is steady: each goal's bounds at full length, and the short ones before."""
        return len(self.loss_ratios) * (self.n_trials * self.seconds + 6 * self.first_s)

    def of_package(self) -> SearchGoalTuple:
        """One for each loss ratio, with every attribute set."""
        return SearchGoalTuple(tuple(self._of_package(ratio) for ratio in self.loss_ratios))

    def _of_package(self, ratio: float) -> SearchGoal:
        return SearchGoal(
            loss_ratio=ratio,
            exceed_ratio=self.exceed_ratio,
            relative_width=self.resolution,
            initial_trial_duration=self.first_s,
            final_trial_duration=self.seconds,
            duration_sum=self.n_trials * self.seconds,
            preceding_targets=N_PRECEDING,
            expansion_coefficient=2,
            fail_fast=False,
        )


@dataclass(frozen=True)
class Made(Generic[M]):
    """One trial and what was asked."""

    asked_pps: float
    seconds: float
    trial: M


@dataclass
class Measurer(AbstractMeasurer, Generic[M]):
    """Between the package and those who make trials; keeps all of them."""

    trial: Measure[M]
    bounds: Bounds
    goals: Goals
    hear: Callable[[float], None]
    known: M | None
    made: list[Made[M]] = field(default_factory=list)
    behind: set[float] = field(default_factory=set)  # rates that the generator did not reach

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """One result, as the package wants it: of a valid trial, or of a rate that was too high for the generator."""
        if self.known and intended_load == self.bounds.high_pps:
            found, self.known = self.known, None
            self.made.append(Made(intended_load, intended_duration, found))
            return result_of(found.loss_ratio, intended_load, intended_duration)
        self._check_time()
        tries = self._try(intended_load, intended_duration)
        spent_s = sum(made.seconds for made in self.made)
        self.hear(max(self.goals.likely_s - spent_s, self.goals.seconds))
        if not tries[-1].invalid:
            return result_of(tries[-1].loss_ratio, intended_load, intended_duration)
        given_up(intended_load, tries)
        self.behind.add(intended_load)
        reached = max(trial.offered_pps for trial in tries)
        too_much = min(1.0, max(self.goals.loss_ratios) + self.goals.resolution)
        weight = 2 * self.goals.n_trials / (1 - self.goals.exceed_ratio)  # whatever else was seen, this rate is no good
        return result_of(
            max(1 - reached / intended_load, too_much), intended_load, intended_duration, weight * self.goals.seconds
        )

    def _try(self, pps: float, seconds: float) -> tuple[M, ...]:
        """Trials at a rate until one is valid, or retries are used up."""
        tries: list[M] = []
        while len(tries) <= self.goals.retries:
            tries.append(self.trial(pps, seconds))
            self.made.append(Made(pps, seconds, tries[-1]))
            if not tries[-1].invalid:
                break
        return tuple(tries)

    def _check_time(self) -> None:
        spent_s = sum(made.seconds for made in self.made)
        if spent_s > self.goals.longest_s:
            raise Undecided(
                f"no answer: {len(self.made)} trials of {spent_s:,.0f} s in all did not settle it, the device answers "
                "differently each time: make trials longer, or allow some of them to lose (exceed ratio)"
            )


def result_of(loss_ratio: float, pps: float, seconds: float, weight_s: float | None = None) -> MeasurementResult:
    """A result that has exactly this loss ratio; it counts for as many seconds as were asked, or as `weight_s` says."""
    lost, offered = loss_ratio.as_integer_ratio()
    return MeasurementResult(
        intended_duration=seconds,
        intended_load=pps,
        offered_count=offered,
        loss_count=lost,
        offered_duration=seconds,
        duration_with_overheads=weight_s or seconds,
    )


@dataclass(frozen=True)
class Bracket:
    """What the package says about one goal."""

    low_pps: float | None
    high_pps: float | None
    effective_loss: float  # at the lower bound: of the worst trial that exceed ratio does not forgive

    @classmethod
    def of(cls, result: GoalResult) -> "Bracket":
        """Its loads as plain numbers."""
        low, high = result.relevant_lower_bound, result.relevant_upper_bound
        low_pps = float(low) if low else None
        through = result.conditional_throughput
        loss = 1 - float(through) / low_pps if through and low_pps else 0.0
        return cls(low_pps, float(high) if high else None, max(0.0, loss))


def finals_by_rate(made: Sequence[Made[M]], seconds: float) -> dict[float, list[M]]:
    """Valid trials of full length, by the rate that was asked, highest first."""
    found: dict[float, list[M]] = {}
    for one in sorted(made, key=lambda one: -one.asked_pps):
        if one.seconds >= seconds and not one.trial.invalid:
            found.setdefault(one.asked_pps, []).append(one.trial)
    return found


def best_of(made: Sequence[Made[M]], ratio: float, low_pps: float | None, goals: Goals) -> M | None:
    """The trial behind the answer: at the package's lower bound, or at the next one below that the house's law allows.

    Rates as offered differ a little from rates as asked; the answer has to lie below all that was offered and lost.
    """
    lossy = [one.trial.offered_pps for one in made if not one.trial.invalid and one.trial.loss_ratio > ratio]
    limit = math.inf if goals.exceed_ratio else min(lossy, default=math.inf)
    for pps, trials in finals_by_rate(made, goals.seconds).items():
        good = [trial for trial in trials if trial.loss_ratio <= ratio]
        is_enough = goals.exceed_ratio or len(good) >= goals.n_trials
        lowest = min(good, key=lambda trial: trial.offered_pps, default=None)
        if low_pps and pps <= low_pps and lowest and is_enough and lowest.offered_pps < limit:
            return lowest
    return None


def answer(measurer: Measurer[M], ratio: float, bracket: Bracket) -> Answer[M]:
    """For one goal; trials are those of the whole search."""
    made, goals, bounds = measurer.made, measurer.goals, measurer.bounds
    best = best_of(made, ratio, bracket.low_pps, goals)
    failed = bracket.high_pps
    pps = best.offered_pps if best else 0.0
    loss = bracket.effective_loss if goals.exceed_ratio or not best else best.loss_ratio
    return Answer(
        pps=pps,
        upper_pps=failed if failed else max(pps, bounds.high_pps),
        limited_by=bounds.high_is if failed is None else "generator" if failed in measurer.behind else "dut",
        best=best,
        n_trials=len(made),
        n_invalid=sum(1 for one in made if one.trial.invalid),
        conditional_pps=pps * (1 - loss),
    )


def find_throughputs(
    measure: Measure[M],
    bounds: Bounds,
    goals: Goals | None = None,
    hear: Callable[[float], None] | None = None,
    known: M | None = None,
) -> tuple[Answer[M], ...]:
    """One answer for each goal, in their order. `bounds` are two different rates. Raises Undecided.

    `hear` is told before each trial but the first about how many seconds of trials are left. `known` is a valid trial
    from before, at the upper bound, that is taken for the first one.
    """
    goals = goals or Goals()
    measurer = Measurer(measure, bounds, goals, hear or (lambda _: None), known)
    config = Config(
        goals=goals.of_package(),
        max_load=bounds.high_pps,
        min_load=bounds.low_pps,
        search_duration_max=NEVER_S,
        warmup_duration=0.0,
    )
    found = MultipleLossRatioSearch(config=config).search(measurer)
    measurer.hear(0.0)
    brackets = [Bracket.of(found[goal]) for goal in config.goals]
    return tuple(answer(measurer, *one) for one in zip(goals.loss_ratios, brackets, strict=True))
