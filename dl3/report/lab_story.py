"""The KVM report's own counts beside those of its lab."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.lab import LabRun
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.names import short_loss
from dl3.report.published import rows_for
from dl3.report.units import percent
from dl3.report.words import Words

SOURCE = "kvm-report"  # also the name of the lab
CLAIMED = 0.0149  # the loss in l2fwd as the report has it; its own counts say otherwise
THERE = ("VM1 tx", "vnet0", "br0", "vnet1", "VM2 rx")
INSIDE = ("VM2",)
BACK = ("vnet2", "br1", "vnet3", "VM1 rx")
PLACES = (*THERE, *INSIDE, *BACK)


@dataclass(frozen=True)
class Segment:
    """A part of the way, as the report counted it."""

    key: str
    places: tuple[str, ...]
    came: float
    went: float

    @property
    def ratio(self) -> float:
        """Lost frames divided by those that came."""
        return 1 - self.went / self.came


def segments() -> tuple[Segment, ...]:
    """The report's own counts, per 10 s."""
    counts = {row.metric.removesuffix(" per 10 s"): row.figure for row in rows_for(SOURCE)}
    sent, came = counts["pktgen sent"], counts["l2fwd received"]
    went, received = counts["l2fwd sent"], counts["pktgen received"]
    return (
        Segment("there", THERE, sent, came),
        Segment("inside", INSIDE, came, went),
        Segment("back", BACK, went, received),
        Segment("whole", PLACES, sent, received),
    )


def story(runs: Sequence[LabRun], words: Words) -> list[Element]:
    """The report's counts beside ours."""
    found = segments()
    values = {one.key: percent(one.ratio) for one in found} | {"claimed": percent(CLAIMED)}
    columns = [Column("segment"), Column("in_report", "frames"), Column("report_loss", "%", True)]
    columns += [Column(f"our_loss_{n}", "%", True) for n, _ in enumerate(runs)]
    rows = [
        Row(
            [
                words(f"lab.segment.{one.key}"),
                f"{one.came:,.0f} → {one.went:,.0f}",
                percent(one.ratio),
                *(short_loss(run.ratio_at(one.places)) for run in runs),
            ]
        )
        for one in found
    ]
    titles = {f"table.our_loss_{n}": words("lab.our_loss", rate=f"{run.asked_pps:,.0f}") for n, run in enumerate(runs)}
    own = Words(words.language, {**words.table, **titles})
    return [
        tag("p", words("lab.story", **values), class_="note"),
        grid("lab-report", columns, rows, own),
        tag("p", words("lab.story_note"), class_="note"),
    ]
