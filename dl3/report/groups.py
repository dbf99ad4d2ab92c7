"""Groups trials by question, so that each figure links to the lines of the record it was computed from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dl3.model.results import BackToBack, Forwarding, FrameLoss, Recovery, Reset, Versus
from dl3.model.trial import Throughput, Trial
from dl3.report.on_purpose import Throughputs
from dl3.report.results import Measured, Results, question

TESTS = {FrameLoss: "frame loss", BackToBack: "back-to-back", Recovery: "recovery", Reset: "reset"}
MOST_RUNS = 3  # pieces of a record that stand in a cell
MORE_TESTS = {Forwarding: "forwarding", Throughput: "throughput"}


@dataclass(frozen=True)
class Group:
    """The trials of one question."""

    anchor: str  # the id of its rows on the page
    test: str
    dut: str
    frame: str
    job: str
    trials: Sequence[Trial]


def anchor_of(line: str) -> str:
    """The id of a trial's row on the page."""
    return f"L{line.replace(':', '-')}"


def test_of(record: Measured) -> str:
    """The test to which a record belongs."""
    if isinstance(record, Trial | Versus):
        return record.test
    return {**TESTS, **MORE_TESTS}[type(record)]


def key_of(record: Measured) -> tuple[str, ...]:
    """What the trials of one question have in common."""
    return *question(record), test_of(record)


class Groups:
    """All groups of a report; links figures to their trials."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.throughputs = Throughputs(results)
        self.tops: dict[str, list[float]] = {}  # the highest value of each chart of one kind, by the name of the chart
        found: dict[tuple[str, ...], list[Trial]] = {}
        for trial in results.trials:
            found.setdefault(key_of(trial), []).append(trial)
        self.groups = {key: self.group(f"G{n}", trials) for n, (key, trials) in enumerate(found.items(), 1)}

    def group(self, anchor: str, trials: Sequence[Trial]) -> Group:
        """The group of these trials."""
        first = trials[0]
        return Group(anchor, first.test, first.dut, first.frame, first.job, trials)

    def of(self, record: Measured) -> Group | None:
        """The trials behind a result, or those of the same question as a trial."""
        return self.groups.get(key_of(record))

    def link(self, record: Measured) -> str | None:
        """The link target of a figure; None if it has no trials."""
        if isinstance(record, Trial):
            return f"#{anchor_of(self.results.line(record))}"
        found = self.of(record)
        return f"#{found.anchor}" if found else None

    def lines(self, record: Measured) -> str:
        """Line numbers: '12–34' for the trials, or that of the record itself."""
        found = None if isinstance(record, Trial) else self.of(record)
        return span([self.results.line(trial) for trial in found.trials]) if found else self.results.line(record)


def place_of(line: str) -> tuple[str, int]:
    """The number of a file, and that of a line in it."""
    file, _, number = line.rpartition(":")
    return file, int(number or 0)


def runs_of(lines: Iterable[str]) -> list[list[str]]:
    """Lines that follow each other, without those of other trials between them."""
    found: list[list[str]] = []
    for line in sorted(lines, key=place_of):
        file, number = place_of(line)
        if found and place_of(found[-1][-1]) == (file, number - 1):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def ends(first: str, last: str) -> str:
    """From a line to another one; a file's number stands before the colon."""
    return first if first == last else f"{first}–{last.rpartition(':')[2]}"


def span(lines: Sequence[str]) -> str:
    """Exactly these lines; of many pieces the first and the last line, with the number of lines meant."""
    runs = runs_of(lines)
    if len(runs) > MOST_RUNS:
        return f"{ends(runs[0][0], runs[-1][-1])} ({len(lines)})"
    return ", ".join(ends(run[0], run[-1]) for run in runs)
