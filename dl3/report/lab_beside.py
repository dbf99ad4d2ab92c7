"""Published figures beside those of a lab."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from dl3.model.lab import LabRun
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.names import short_loss
from dl3.report.published import Published, rows_for
from dl3.report.units import number
from dl3.report.words import Words

SOURCES = {  # of each lab, in the names of dl3.report.published
    "contrail": ("vrouter 6.1",),
    "white-paper-vswitch": ("white-paper 3.1", "white-paper 3.2", "white-paper 3.3"),
    "kernel-notes": ("notes kernel L2", "notes kernel L3", "notes DPDK L2", "notes kernel, one core"),
}
COLUMNS = (
    Column("published_case"),
    Column("frame_bytes", "byte", True),
    Column("published_figure"),
    Column("here"),
)


def loss_row(row: Published, pps: float, ratio: float, runs: Sequence[LabRun], words: Words) -> Row:
    """A load and its loss, and the loss of the same load here."""
    same = [run for run in runs if run.frame == row.frame and round(run.asked_pps) == round(pps)]
    found = [
        words("lab.here_loss", percent=short_loss(run.ratio), on=words(f"lab.on.{run.topology.accelerator}"))
        for run in same
    ]
    published = words("lab.published_loss", rate=number(pps, 0), percent=short_loss(ratio))
    return Row(
        [row.value or row.case, row.frame, published, words("list.comma").join(found) or words("lab.not_measured")]
    )


def best_of(runs: Sequence[LabRun]) -> dict[str, LabRun]:
    """The run of each switch of which most frames arrived in a second."""
    found: dict[str, LabRun] = {}
    for run in sorted(runs, key=lambda run: run.received / run.seconds if run.seconds else 0.0):
        found[run.topology.switch] = run
    return found


def rate_row(row: Published, runs: Sequence[LabRun], words: Words) -> Row:
    """A rate, and the highest one of each switch here, if frames had that size."""
    best = best_of([run for run in runs if run.frame == row.frame])
    found = [
        words(
            "lab.here_rate",
            rate=number(run.received / run.seconds, 0),
            switch=words(f"lab.switch.{switch}"),
            on=words(f"lab.on.{run.topology.accelerator}"),
        )
        for switch, run in sorted(best.items())
        if run.seconds
    ]
    published = words("lab.published_rate", rate=number(row.pps or 0.0, 0))
    title = f"{row.case or row.scenario}: {row.value or row.dut}"
    return Row([title, row.frame, published, words("list.comma").join(found) or words("lab.not_measured")])


def rows_of(name: str, runs: Sequence[LabRun], words: Words) -> Iterator[Row]:
    """The rows of a case. Loads are published as a rate, and the loss follows."""
    offered = 0.0
    for row in rows_for(name):
        if row.metric == "offered rate":
            offered = row.figure
        elif row.metric == "loss ratio":
            yield loss_row(row, offered, row.figure, runs, words)
        elif row.pps is not None and row.metric != "received rate" and row.frame in {run.frame for run in runs}:
            yield rate_row(row, runs, words)


def beside(runs: Sequence[LabRun], words: Words) -> list[Element]:
    """A table for each lab of which figures were published."""
    pieces: list[Element] = []
    for lab in dict.fromkeys(run.topology.lab for run in runs):
        own = [run for run in runs if run.topology.lab == lab]
        rows = [row for name in SOURCES.get(lab, ()) for row in rows_of(name, own, words)]
        if rows:
            pieces += [grid(f"published-{lab}", COLUMNS, rows, words), tag("p", words("lab.published"), class_="note")]
    return pieces
