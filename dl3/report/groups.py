"""Groups trials by question, so that each figure links to the lines of the record it was computed from."""

from collections.abc import Sequence
from dataclasses import dataclass

from dl3.model.answers import BackToBack, Forwarding, FrameLoss, Recovery, Reset, Versus
from dl3.model.trial import Throughput, Trial
from dl3.report.results import Measured, Results, question

TESTS = {FrameLoss: "frame loss", BackToBack: "back-to-back", Recovery: "recovery", Reset: "reset"}
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


def span(lines: Sequence[str]) -> str:
    """From the first to the last line; with several files, the file number precedes the colon."""

    def order(line: str) -> tuple[str, int]:
        file, _, number = line.rpartition(":")
        return file, int(number or 0)

    ordered = sorted(lines, key=order)
    last = ordered[-1].rpartition(":")[2]
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]}–{last}"
