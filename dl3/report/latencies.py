"""Latency trials, grouped for charts and sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dl3.model.trial import Trial
from dl3.report.results import Results, Series

QUANTILES = ("p50", "p99", "p99_9", "max")
# All statistics of a distribution, with the share of frames at or below them.
SHARES = {
    "min": 0.0,
    "p50": 0.5,
    "p90": 0.9,
    "p99": 0.99,
    "p99_9": 0.999,
    "p99_99": 0.9999,
    "p99_999": 0.99999,
}
FIGURES = (*SHARES, "mean", "max")


@dataclass(frozen=True)
class LoadPoint:
    """Latency at one load: the median over its trials, in nanoseconds, by name of the statistic."""

    x: float  # percent of the throughput, or Mpps offered
    values: tuple[tuple[str, float], ...]
    n_frames: int = 0  # number of timed frames
    line: str = ""  # of the first of its trials


@dataclass(frozen=True)
class LatencyCase:
    """One device under one frame size: the latencies of a chart."""

    series: Series
    frame: str
    is_share: bool  # x is percent of the throughput; otherwise offered Mpps
    points: tuple[LoadPoint, ...]

    @property
    def campaign(self) -> str:
        """The campaign it was measured in."""
        return self.series.campaign

    @property
    def dut(self) -> str:
        """The device."""
        return self.series.dut


def load_point(x: float, trials: Sequence[Trial], results: Results) -> LoadPoint:
    """The medians of the trials at one load."""
    values = tuple((name, median(getattr(trial.latency, name) for trial in trials)) for name in FIGURES)
    return LoadPoint(x, values, min(trial.latency.n for trial in trials), results.line(trials[0]))


def latency_case(trials: Sequence[Trial], results: Results) -> LatencyCase:
    """The latencies of trials of one device under one frame size."""
    is_share = all(trial.load is not None for trial in trials)
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        x = (trial.load or 0.0) * 100 if is_share else trial.offered_pps / 1e6
        by_load.setdefault(x, []).append(trial)
    points = tuple(load_point(x, by_load[x], results) for x in sorted(by_load) if math.isfinite(x))
    return LatencyCase(results.series_of(trials[0]), trials[0].frame, is_share, points)


def latency_cases(results: Results) -> tuple[LatencyCase, ...]:
    """One case for each series and frame size with latency trials that received frames."""
    groups: dict[tuple[Series, str], list[Trial]] = {}
    for trial in results.latencies:
        if trial.latency.n > 0:
            groups.setdefault((results.series_of(trial), trial.frame), []).append(trial)
    return tuple(latency_case(trials, results) for trials in groups.values())
