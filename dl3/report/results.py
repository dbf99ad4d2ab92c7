"""The records of a report, sorted and grouped as its tables and charts want them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from dl3.model.trial import Throughput, Trial

Record = Trial | Throughput


@dataclass(frozen=True)
class Series:
    """What one colour in a chart stands for."""

    campaign: str
    dut: str
    goal_loss_ratio: float


def series_of(search: Throughput) -> Series:
    """The series that the answer of a search belongs to."""
    return Series(search.campaign, search.dut, search.goal_loss_ratio)


def frame_order(record: Record) -> tuple[bool, float, str]:
    """Fixed sizes in their order, mixes behind them by their mean."""
    is_mix = not record.frame.isascii() or not record.frame.isdigit()
    size = record.mean_bytes if is_mix else float(record.frame[:12])
    return is_mix, size if math.isfinite(size) else 0.0, record.frame


def frames_of(records: Iterable[Record]) -> tuple[str, ...]:
    """The frame sizes and mixes of records, each once, in the order of charts."""
    return tuple(dict.fromkeys(record.frame for record in sorted(records, key=frame_order)))


@dataclass(frozen=True)
class LoadPoint:
    """Latency at one load: the median over the trials at it, in nanoseconds, by name of the figure."""

    x: float  # percent of the throughput, or Mpps offered
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class LatencyCase:
    """One device under one frame size: the latencies of a chart."""

    campaign: str
    dut: str
    frame: str
    is_share: bool  # x is percent of the throughput; else Mpps offered
    points: tuple[LoadPoint, ...]


QUANTILES = ("p50", "p99", "p99_9", "max")


@dataclass(frozen=True)
class Results:
    """All that a report speaks of."""

    searches: tuple[Throughput, ...]  # one for each series and frame
    trials: tuple[Trial, ...]  # in the order of their times

    @property
    def records(self) -> tuple[Record, ...]:
        """Everything."""
        return (*self.searches, *self.trials)

    @property
    def duts(self) -> tuple[str, ...]:
        """Names of the devices under test, each once."""
        return tuple(dict.fromkeys(record.dut for record in self.records))

    @property
    def series(self) -> tuple[Series, ...]:
        """All series, in the order of their first answers."""
        return tuple(dict.fromkeys(series_of(search) for search in self.searches))

    @property
    def valid(self) -> tuple[Trial, ...]:
        """Trials that say something about the device under test."""
        return tuple(trial for trial in self.trials if not trial.invalid and trial.test != "ceiling")

    @property
    def invalid(self) -> tuple[Trial, ...]:
        """INVALID trials: they have reasons, and say nothing about the device under test."""
        return tuple(trial for trial in self.trials if trial.invalid)

    @property
    def latencies(self) -> tuple[Trial, ...]:
        """Valid latency trials, by device, frame and load."""
        found, duts = [trial for trial in self.valid if trial.test == "latency"], self.duts
        frames = frames_of(found)  # the mean of a mix differs a little from trial to trial
        return tuple(sorted(found, key=lambda t: (t.campaign, duts.index(t.dut), frames.index(t.frame), t.offered_pps)))

    @property
    def unanswered(self) -> tuple[tuple[str, str], ...]:
        """Device and frame of each search that has trials and no answer."""
        answered = {(search.campaign, search.dut, search.frame) for search in self.searches}
        tried = sorted((trial for trial in self.trials if trial.test == "throughput"), key=frame_order)
        left = [(t.dut, t.frame) for t in tried if (t.campaign, t.dut, t.frame) not in answered]
        return tuple(dict.fromkeys(left))

    def moments(self) -> tuple[str, ...]:
        """When the records were made, from the first to the last."""
        return tuple(sorted(record.at for record in self.records))


def gather(records: Iterable[Record]) -> Results:
    """Sort records; of two answers to one question the later one counts."""
    searches: dict[tuple[Series, str], Throughput] = {}
    trials: list[Trial] = []
    for record in records:
        if isinstance(record, Throughput):
            searches[series_of(record), record.frame] = record
        else:
            trials.append(record)
    order = list(dict.fromkeys(series for series, _ in searches))
    ordered = sorted(searches.values(), key=lambda search: (order.index(series_of(search)), frame_order(search)))
    return Results(tuple(ordered), tuple(sorted(trials, key=lambda trial: trial.at)))


def load_point(x: float, trials: Sequence[Trial]) -> LoadPoint:
    """The medians of the trials at one load."""
    values = tuple((name, median(getattr(trial.latency, name) for trial in trials)) for name in QUANTILES)
    return LoadPoint(x, values)


def latency_case(trials: Sequence[Trial]) -> LatencyCase:
    """The latencies of trials of one device under one frame size."""
    is_share = all(trial.load is not None for trial in trials)
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        x = (trial.load or 0.0) * 100 if is_share else trial.offered_pps / 1e6
        by_load.setdefault(x, []).append(trial)
    points = tuple(load_point(x, by_load[x]) for x in sorted(by_load) if math.isfinite(x))
    return LatencyCase(trials[0].campaign, trials[0].dut, trials[0].frame, is_share, points)


def latency_cases(results: Results) -> tuple[LatencyCase, ...]:
    """One case for each campaign, device and frame that has latency trials in which something was received."""
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in results.latencies:
        if trial.latency.n > 0:
            groups.setdefault((trial.campaign, trial.dut, trial.frame), []).append(trial)
    return tuple(latency_case(trials) for trials in groups.values())


@dataclass(frozen=True)
class Place:
    """Where frames were lost, over all valid trials."""

    name: str
    n_lost: int
    n_trials: int  # that lost frames there
    lowest_pps: float  # the lowest load at which it happened


def places_of(trial: Trial) -> dict[str, int]:
    """Lost frames by place; what the places do not explain is 'unknown'."""
    found = {name: n for name, n in trial.account.lost_by_place.items() if n > 0}
    rest = trial.account.lost - sum(found.values())
    if rest > 0:
        found["unknown"] = found.get("unknown", 0) + rest
    return found


def losses(trials: Iterable[Trial]) -> tuple[Place, ...]:
    """The places of loss, the greatest first."""
    found: dict[str, Place] = {}
    for trial in trials:
        for name, n in places_of(trial).items():
            old = found.get(name, Place(name, 0, 0, math.inf))
            lowest = min(old.lowest_pps, trial.offered_pps)
            found[name] = Place(name, old.n_lost + n, old.n_trials + 1, lowest)
    return tuple(sorted(found.values(), key=lambda place: (-place.n_lost, place.name)))
