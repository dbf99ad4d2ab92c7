"""The highest rate at which no trial loses more than the goal allows (RFC 2544, 26.1), by binary search."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from dl3.model.fault import Fault
from dl3.model.trial import Limit

N_HINTED = 2  # number of failed rates whose measured rates are used to choose the next one
FILL = 3  # limit on INVALID trials of a whole search, in rates with all retries used; beyond it, retries are reduced


class Measured(Protocol):
    """The properties of a trial that the search uses."""

    @property
    def offered_pps(self) -> float: ...

    @property
    def received_pps(self) -> float: ...

    @property
    def loss_ratio(self) -> float: ...

    @property
    def invalid(self) -> Sequence[str]:
        """Why the trial is not evidence about the device; empty if it is valid."""

    @property
    def is_behind(self) -> bool:
        """INVALID because the generator could not keep up at this rate."""


M = TypeVar("M", bound=Measured)
Measure = Callable[[float], M]


class Undecided(Fault):
    """Trials stayed INVALID for a reason that no other rate would avoid."""


@dataclass(frozen=True)
class Bounds:
    """The search range, inclusive, and what limits its upper end."""

    low_pps: float
    high_pps: float
    high_is: Limit = "asked"

    def __post_init__(self) -> None:
        assert 0 < self.low_pps <= self.high_pps < math.inf, "bounds are positive and in order"  # noqa: S101


@dataclass(frozen=True)
class SearchSettings:
    """The pass criterion and the relative resolution (0.005 is half a percent)."""

    goal_loss_ratio: float = 0.0
    resolution: float = 0.005
    repetitions: int = 1
    retries: int = 3  # of INVALID trials, per rate

    def __post_init__(self) -> None:
        assert 1e-6 <= self.resolution < 1, "a resolution is a share"  # noqa: S101
        assert 0 <= self.goal_loss_ratio < 1, "a goal is a share"  # noqa: S101
        assert self.repetitions >= 1, "a rate is tried at least once"  # noqa: S101
        assert self.retries >= 0, "retries are counted"  # noqa: S101


@dataclass(frozen=True)
class Rung(Generic[M]):
    """A rate and its trials."""

    asked_pps: float
    trials: tuple[M, ...]  # the last one led to the verdict
    verdict: Literal["passed", "lost", "behind"]

    @property
    def valid(self) -> tuple[M, ...]:
        """The trials that are evidence about the device."""
        return tuple(trial for trial in self.trials if not trial.invalid)

    @property
    def offered_pps(self) -> float:
        """The lowest rate actually offered."""
        return min(trial.offered_pps for trial in self.valid)


@dataclass(frozen=True)
class SearchResult(Generic[M]):
    """The highest rate that passed (0: none) and the lowest one known to be too high for the device."""

    pps: float
    upper_pps: float | None  # requested rate of a valid trial that missed the goal; None: no such trial above `pps`
    ended_pps: float  # lowest rate that failed for any reason, generator included, or the upper bound
    limited_by: Limit
    best: M | None  # the trial that gave `pps`
    n_trials: int
    n_invalid: int
    conditional_pps: float | None = None  # RFC 9971's conditional throughput, if searched for


def halvings(ratio: float, resolution: float) -> int:
    """Number of bisections (on a logarithmic scale) until the ratio of two rates is within the resolution."""
    steps = math.log(ratio) / -math.log1p(-resolution)
    return max(0, math.ceil(math.log2(steps))) if steps > 0 else 0


def most_rates(bounds: Bounds, settings: SearchSettings) -> int:
    """Maximum number of rates: the upper bound, the hints, halvings until the first rate passes, then bisection."""
    ratio = bounds.high_pps / bounds.low_pps
    return 2 + 2 * N_HINTED + math.ceil(math.log2(ratio)) + halvings(ratio, settings.resolution)


def most_trials(bounds: Bounds, settings: SearchSettings) -> int:
    """Maximum number of trials."""
    return most_rates(bounds, settings) * (settings.repetitions + settings.retries)


def bracket(rungs: Sequence[Rung[M]], bounds: Bounds) -> tuple[float, float]:
    """The highest rate that passed (or the lower bound) and the lowest that failed (or the upper bound)."""
    low = max((rung.asked_pps for rung in rungs if rung.verdict == "passed"), default=bounds.low_pps)
    high = min((rung.asked_pps for rung in rungs if rung.verdict != "passed"), default=bounds.high_pps)
    return low, high


def hints(rungs: Sequence[Rung[M]], resolution: float) -> list[float]:
    """Rates just below and above what the device forwarded, or the generator reached, at failed rates."""
    found = []
    for rung in [rung for rung in rungs if rung.verdict != "passed"][:N_HINTED]:
        reached = rung.trials[-1].received_pps if rung.verdict == "lost" else max(t.offered_pps for t in rung.trials)
        found += [reached * (1 - resolution / 2), reached * (1 + resolution / 2)]
    return found


def next_rate(rungs: Sequence[Rung[M]], bounds: Bounds, settings: SearchSettings) -> float | None:
    """The next rate to try; None if the search is complete."""
    if all(rung.asked_pps != bounds.high_pps for rung in rungs):
        return bounds.high_pps
    low, high = bracket(rungs, bounds)
    any_passed = any(rung.verdict == "passed" for rung in rungs)
    if high - low <= settings.resolution * high:
        return None if any_passed or high <= low else low
    for hint in hints(rungs, settings.resolution):
        if low < hint < high:
            return hint
    return max(high / 2, low) if not any_passed and high > 2 * low else math.sqrt(low * high)


def likely_left(rungs: Sequence[Rung[M]], bounds: Bounds, settings: SearchSettings) -> int:
    """Estimated number of rates still to try, for a progress bar; 0 at the end."""
    if next_rate(rungs, bounds, settings) is None:
        return 0
    low, high = bracket(rungs, bounds)
    return 1 + halvings(min(high / low, 2.0), settings.resolution)


def is_enough(newest: Measured, n_here: int, n_all: int, retries: int) -> bool:
    """Whether to give up a rate after `n_here` INVALID trials there and `n_all` in the whole search.

    After too many INVALID trials, a search allows a generator that is behind only two attempts per rate. Otherwise it
    would hardly finish on a machine that pauses frequently.
    """
    return n_here > retries or (newest.is_behind and n_here > 1 and n_all > FILL * retries)


def try_rate(measure: Measure[M], pps: float, settings: SearchSettings, n_invalid: int = 0) -> Rung[M]:
    """Repeat trials at one rate until it has passed often enough, lost frames, or been INVALID too often. `n_invalid`
    counts INVALID trials at other rates.
    """
    trials: list[M] = []
    n_valid = 0
    while n_valid < settings.repetitions:
        trials.append(measure(pps))
        n_here = len(trials) - n_valid
        if not trials[-1].invalid:
            if trials[-1].loss_ratio > settings.goal_loss_ratio:
                return Rung(pps, tuple(trials), "lost")
            n_valid += 1
        elif is_enough(trials[-1], n_here, n_invalid + n_here, settings.retries):
            return given_up(pps, tuple(trials))
    return Rung(pps, tuple(trials), "passed")


def given_up(pps: float, trials: tuple[M, ...]) -> Rung[M]:
    """Verdict on a rate whose trials stayed INVALID: too high for the generator, or Undecided."""
    if any(trial.is_behind for trial in trials):
        return Rung(pps, tuple(sorted(trials, key=lambda trial: trial.is_behind)), "behind")
    n_invalid = sum(1 for trial in trials if trial.invalid)
    raise Undecided(
        f"no result: at {pps:,.0f} packets/s {n_invalid} trials were INVALID, the last because {trials[-1].invalid[0]}"
    )


def search_result(rungs: Sequence[Rung[M]], bounds: Bounds, settings: SearchSettings) -> SearchResult[M]:
    """The highest rate that passed and is below every offered rate that lost frames."""
    trials = [trial for rung in rungs for trial in rung.trials]
    lossy = [trial for trial in trials if not trial.invalid and trial.loss_ratio > settings.goal_loss_ratio]
    lowest_lossy = min((trial.offered_pps for trial in lossy), default=math.inf)
    passed = [rung for rung in rungs if rung.verdict == "passed" and rung.offered_pps < lowest_lossy]
    best = max(passed, key=lambda rung: rung.offered_pps, default=None)
    failed = min((r for r in rungs if r.verdict != "passed"), key=lambda rung: rung.asked_pps, default=None)
    too_high = min((rung.asked_pps for rung in rungs if rung.verdict == "lost"), default=None)
    found = min(best.valid, key=lambda trial: trial.offered_pps) if best else None
    pps = found.offered_pps if found else 0.0
    return SearchResult(
        pps=pps,
        upper_pps=too_high and max(pps, too_high),
        ended_pps=max(pps, failed.asked_pps if failed else bounds.high_pps),
        limited_by=bounds.high_is if failed is None else "dut" if failed.verdict == "lost" else "generator",
        best=found,
        n_trials=len(trials),
        n_invalid=sum(1 for trial in trials if trial.invalid),
    )


def find_throughput(
    measure: Measure[M],
    bounds: Bounds,
    settings: SearchSettings | None = None,
    report: Callable[[int], None] | None = None,
    known: Sequence[Rung[M]] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> SearchResult[M]:
    """Search within bounds. After each rate, `report` is called with the estimated number of rates left. Raises
    Undecided.

    Rates in `known` are not tried again; their trials count like all others. Once `is_over` returns true, the search
    ends as soon as one rate has passed, with a correspondingly coarser result.
    """
    settings = settings or SearchSettings()
    rungs = list(known)
    while (pps := next_rate(rungs, bounds, settings)) is not None:
        if is_over() and search_result(rungs, bounds, settings).best:
            break
        n_invalid = sum(len(rung.trials) - len(rung.valid) for rung in rungs)
        rungs.append(try_rate(measure, pps, settings, n_invalid))
        if report:
            report(likely_left(rungs, bounds, settings))
    return search_result(rungs, bounds, settings)
