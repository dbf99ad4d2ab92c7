"""The records of a report, sorted and grouped for its tables and charts."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

from dl3.model.campaign import Case, Finished, Job, Plan, Skipped
from dl3.model.lab import LabRun
from dl3.model.results import BackToBack, Forwarding, FrameLoss, Idle, Proof, Recovery, Reset, Versus
from dl3.model.shaping import Shaping
from dl3.model.trial import Throughput, Trial, wire_of
from dl3.search.forwarding import forwarded_pps

Other = FrameLoss | BackToBack | Recovery | Reset | Forwarding | Versus
Measured = Trial | Throughput | Other
Record = Measured | Proof | Shaping | Plan | Skipped | Finished | Idle | LabRun
# Trials of the generator against itself: not related to a device under test.
OF_THE_TESTER = ("ceiling", "proof")
# Trials at a steady load; after a burst or an overload, more may come back than can be sustained.
STEADY = ("ceiling", "throughput", "latency", "frame loss", "forwarding")


@dataclass(frozen=True)
class Series:
    """What one colour in a chart represents."""

    campaign: str
    dut: str
    goal_loss_ratio: float = 0.0
    parameters: tuple[tuple[str, str], ...] = ()  # those that the case of its job varies
    wire: str = ""  # a reset may be measured over a different wire than the rest of its campaign


class Tester(NamedTuple):
    """What has one ceiling: the generator of a campaign, with the same frames over the same wire."""

    campaign: str
    wire: str  # '' if unknown
    frame: str


def tester_of(record: Measured) -> Tester:
    """The tester behind a record: its campaign, wire and frame size."""
    return Tester(record.campaign, wire_of(record.facts), record.frame)


def frame_order(record: Measured) -> tuple[bool, float, str]:
    """Fixed sizes in ascending order, then mixes by their mean."""
    is_mix = not record.frame.isascii() or not record.frame.isdigit()
    size = record.mean_bytes if is_mix else float(record.frame[:12])
    return is_mix, size if math.isfinite(size) else 0.0, record.frame


def question(record: Measured) -> tuple[str, ...]:
    """The key that the trials and the result of one test share; another wire is another question."""
    return record.campaign, record.job, record.dut, record.frame, wire_of(record.facts)


def frames_of(records: Iterable[Measured]) -> tuple[str, ...]:
    """The frame sizes and mixes of records, each once, in chart order."""
    return tuple(dict.fromkeys(record.frame for record in sorted(records, key=frame_order)))


@dataclass(frozen=True)
class Results:
    """All data of a report."""

    searches: tuple[Throughput, ...]  # one for each series, job and frame size
    trials: tuple[Trial, ...]  # in order of time
    others: tuple[Other, ...] = ()  # one for each question
    proofs: tuple[Proof, ...] = ()
    shapings: tuple[Shaping, ...] = ()  # one for each device and number of subscribers of a campaign
    plans: tuple[Plan, ...] = ()  # the last plan of each campaign
    skipped: tuple[Skipped, ...] = ()
    labs: tuple[LabRun, ...] = ()  # in order of time
    lines: Mapping[int, str] = field(default_factory=dict)  # by id(): the line of the record, '17', of several '2:17'

    @property
    def measured(self) -> tuple[Measured, ...]:
        """Everything that has a device under test."""
        return (*self.searches, *self.others, *(t for t in self.trials if t.test not in OF_THE_TESTER))

    @property
    def records(self) -> tuple[Throughput | Other | Trial | Proof | Shaping | LabRun, ...]:
        """Everything that was measured."""
        return (*self.searches, *self.others, *self.proofs, *self.shapings, *self.trials, *self.labs)

    @cached_property
    def jobs(self) -> dict[str, Job]:
        """The jobs of all plans by their keys."""
        return {job.key: job for plan in self.plans for case in plan.cases for job in case.jobs}

    @property
    def duts(self) -> tuple[str, ...]:
        """Names of the devices under test, each once."""
        return tuple(dict.fromkeys(record.dut for record in self.measured))

    @property
    def series(self) -> tuple[Series, ...]:
        """All series of searches, in the order of their first results."""
        return tuple(dict.fromkeys(self.series_of(search) for search in self.searches))

    @property
    def valid(self) -> tuple[Trial, ...]:
        """Trials that are valid for the device under test."""
        return tuple(trial for trial in self.trials if not trial.invalid and trial.test not in OF_THE_TESTER)

    @property
    def invalid(self) -> tuple[Trial, ...]:
        """INVALID trials: they have reasons, and say nothing about the device under test."""
        return tuple(trial for trial in self.trials if trial.invalid)

    @cached_property
    def reached(self) -> dict[Tester, float]:
        """The highest rate received from a device by each generator, packets/s: a lower bound of its ceiling."""
        trials = (one for one in self.trials if one.test in STEADY and not one.invalid)
        rates: list[tuple[Measured, float]] = [(one, min(one.received_pps, forwarded_pps(one))) for one in trials]
        rates += [(one, one.pps) for one in self.searches]
        found: dict[Tester, float] = {}
        for record, pps in rates:
            if math.isfinite(pps):
                found[tester_of(record)] = max(pps, found.get(tester_of(record), 0.0))
        return found

    @property
    def latencies(self) -> tuple[Trial, ...]:
        """Valid latency trials, by device, parameters, frame and load."""
        found = [trial for trial in self.valid if trial.test == "latency"]
        series = list(dict.fromkeys(self.series_of(trial) for trial in found))
        frames = frames_of(found)  # the mean of a mix differs slightly between trials

        def order(trial: Trial) -> tuple[str, int, int, float]:
            return trial.campaign, series.index(self.series_of(trial)), frames.index(trial.frame), trial.offered_pps

        return tuple(sorted(found, key=order))

    @property
    def without_result(self) -> tuple[tuple[str, str], ...]:
        """Device and frame size of each search that has trials but no result."""
        with_result = {question(search) for search in self.searches}
        tried = sorted((trial for trial in self.trials if trial.test == "throughput"), key=frame_order)
        left = [(trial.dut, trial.frame) for trial in tried if question(trial) not in with_result]
        return tuple(dict.fromkeys(left))

    def series_of(self, record: Measured) -> Series:
        """The series to which a record belongs."""
        job = self.jobs.get(record.job)
        goal = record.goal_loss_ratio if isinstance(record, Throughput) else 0.0
        parameters = tuple(job.parameters.items()) if job else ()
        return Series(record.campaign, record.dut, goal, parameters, wire_of(record.facts))

    def line(self, record: Record) -> str:
        """The line of the record that holds this."""
        return self.lines.get(id(record), "")

    def moments(self) -> tuple[str, ...]:
        """The times of the records, from the first to the last."""
        return tuple(sorted(record.at for record in self.records))

    def only(self, jobs: Iterable[str]) -> "Results":
        """The records that belong to these jobs."""
        wanted = frozenset(jobs)
        return replace(
            self,
            searches=tuple(one for one in self.searches if one.job in wanted),
            trials=tuple(one for one in self.trials if one.job in wanted),
            others=tuple(one for one in self.others if one.job in wanted),
            skipped=tuple(one for one in self.skipped if one.job in wanted),
        )


@dataclass(frozen=True)
class Part:
    """The results of one case, or of everything that belongs to no case."""

    case: Case | None
    results: Results


def parts(results: Results) -> list[Part]:
    """What belongs to no case first, then a part for each case."""
    cases = [case for plan in results.plans for case in plan.cases]
    planned = {job.key for case in cases for job in case.jobs}
    loose = {record.job for record in results.measured} - planned
    rest = [Part(None, results.only(loose))] if loose else []
    return [*rest, *(Part(case, results.only(job.key for job in case.jobs)) for case in cases)]


class Sorter:
    """Collects records one after another; of two results for one question the later one counts.

    A skipped job that was finished later, because its campaign was resumed, no longer counts as skipped.
    """

    def __init__(self) -> None:
        self.searches: dict[tuple[object, ...], Throughput] = {}
        self.others: dict[tuple[object, ...], Other] = {}
        self.plans: dict[str, Plan] = {}
        self.trials: list[Trial] = []
        self.proofs: list[Proof] = []
        self.shapings: dict[tuple[object, ...], Shaping] = {}
        self.skipped: dict[tuple[str, str], Skipped] = {}
        self.finished: set[tuple[str, str]] = set()
        self.labs: list[LabRun] = []

    def take(self, record: Record) -> None:
        """Store a record where it belongs."""
        if isinstance(record, Throughput):
            self.searches[record.goal_loss_ratio, *question(record)] = record
        elif isinstance(record, Trial):
            self.trials.append(record)
        elif isinstance(record, Proof | LabRun):
            self.append(record)
        elif isinstance(record, Shaping):
            self.shapings[record.question] = record
        elif isinstance(record, Plan | Skipped | Finished):
            self.take_of_campaign(record)
        elif not isinstance(record, Idle):  # its trials and searches count as those of two devices here
            what = {"reset": "what", "versus": "test"}.get(record.kind, "kind")
            self.others[record.kind, getattr(record, what), *question(record)] = record

    def take_of_campaign(self, record: Plan | Skipped | Finished) -> None:
        """Store what was planned, and what became of it."""
        if isinstance(record, Plan):
            first = self.plans.get(record.campaign, record)  # the first plan is the commitment
            self.plans[record.campaign] = record.model_copy(update={"seconds": first.seconds})
        elif isinstance(record, Skipped):
            self.skipped[record.campaign, record.job] = record
        else:
            self.finished.add((record.campaign, record.job))

    def append(self, record: Proof | LabRun) -> None:
        """Keep each of these."""
        if isinstance(record, Proof):
            self.proofs.append(record)
        else:
            self.labs.append(record)

    def results(self, lines: Mapping[int, str]) -> Results:
        """All records in order."""
        results = Results(
            searches=tuple(self.searches.values()),
            trials=tuple(sorted(self.trials, key=lambda trial: trial.at)),
            others=tuple(sorted(self.others.values(), key=frame_order)),
            proofs=tuple(self.proofs),
            shapings=tuple(self.shapings.values()),
            plans=tuple(self.plans.values()),
            skipped=tuple(self.skipped[job] for job in self.skipped if job not in self.finished),
            labs=tuple(sorted(self.labs, key=lambda run: run.at)),
            lines=lines,
        )
        order = list(results.series)
        searches = sorted(self.searches.values(), key=lambda s: (order.index(results.series_of(s)), frame_order(s)))
        return replace(results, searches=tuple(searches))


def gather(records: Iterable[Record], lines: Iterable[str] | None = None) -> Results:
    """Sort records; `lines` gives their positions, otherwise they are counted."""
    sorter, found = Sorter(), {}
    for record, line in zip(records, lines or (str(n) for n in count(1)), strict=False):
        sorter.take(record)
        found[id(record)] = line
    return sorter.results(found)
