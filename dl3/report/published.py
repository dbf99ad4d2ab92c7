"""Published results for the same questions: a table in the package, each row with its source."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dl3.model.trial import LAYER1_BYTES

TABLE = Path(__file__).parent / "data" / "published-results.csv"
# The name of a source in the cases of a campaign, and in the table.
SOURCES = {
    "white-paper": "China Telecom DPDK white paper",
    "thesis": "HUST thesis",
    "vrouter": "OpenContrail DPDK vRouter report",
    "notes": "SR-IOV and kernel forwarding notes",
    "kvm-report": "KVM l2fwd",
}
GBPS = 1e9
PAIR_GBPS = 20.0  # 2 x 10 Gbit/s, the base of the white paper's percentages
IMIX_BYTES = 209.92  # 64, 128, 256, 512, 1024 bytes: 45, 23.5, 15, 11, 5.5 %
LEFT_OUT = ("offered rate", "bit rate", "loss ratio")  # listed in addition to what was forwarded


@dataclass(frozen=True)
class Published:
    """One figure of a source."""

    source: str
    case: str
    scenario: str
    dut: str
    variable: str
    value: str
    frame: str
    metric: str
    unit: str
    figure: float
    note: str

    @property
    def mean_bytes(self) -> float:
        """Of the frame or mix, with FCS."""
        return float(self.frame) if self.frame.isdigit() else IMIX_BYTES

    @property
    def line_bps(self) -> float:
        """The meaning of 100 %: two ports of 10 Gbit/s; if a case varies the traffic, all of it."""
        traffic = re.fullmatch(r"(\d+)G", self.value)
        vms = re.fullmatch(r"(\d+)\+(\d+)", self.value)
        if traffic:
            return float(traffic[1]) * GBPS
        return PAIR_GBPS * GBPS * (int(vms[1]) + int(vms[2]) if vms else 1)

    @property
    def pps(self) -> float | None:
        """Frames per second; None if the figure is not a rate."""
        if self.unit.startswith("percent"):
            return self.figure / 100 * self.line_bps / ((self.mean_bytes + LAYER1_BYTES) * 8)
        return self.figure if self.unit == "packet/s" else None


def published_of(row: dict[str, str]) -> Published:
    """A row of the table."""
    texts = {
        key: row[key] for key in ("source", "case", "scenario", "dut", "variable", "value", "metric", "unit", "note")
    }
    return Published(**texts, frame=row["frame_bytes"].lower(), figure=float(row["figure"]))


def losses(rows: Sequence[Published]) -> Iterator[tuple[Published, float]]:
    """Each measurement of which the offered rate and the loss ratio were published, in this order: both."""
    offered: Published | None = None
    for row in rows:
        if row.metric == "offered rate":
            offered = row
        elif row.metric == "loss ratio" and offered:
            yield offered, row.figure


def forwarded(rows: Sequence[Published]) -> Iterator[Published]:
    """The received rate of each such measurement. Its value tells both."""
    for offered, ratio in losses(rows):
        value = f"{offered.figure:,.0f} pps, -{ratio:.2%}"
        yield replace(offered, metric="received rate", value=value, figure=round(offered.figure * (1 - ratio)))


@cache
def table() -> tuple[Published, ...]:
    """The whole table, and the received rates that follow from it."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = tuple(published_of(row) for row in csv.DictReader(file))
    return (*rows, *forwarded(rows))


def rows_for(name: str) -> tuple[Published, ...]:
    """All rows of 'white-paper 1.1', of 'notes kernel L3' (a source without numbers has scenarios), or of a source."""
    source, _, case = name.partition(" ")
    begin = SOURCES.get(source, source)
    return tuple(row for row in table() if row.source.startswith(begin) and case in ("", row.case or row.scenario))


def published_for(names: Iterable[str]) -> tuple[Published, ...]:
    """Forwarded rates of the named cases; a name without a case means its whole source."""
    found = (row for name in names for row in rows_for(name))
    return tuple(row for row in found if row.pps is not None and row.metric not in LEFT_OUT)


def losses_for(names: Iterable[str]) -> tuple[tuple[Published, float], ...]:
    """Offered rates and loss ratios of the named cases."""
    return tuple(pair for name in names for pair in losses(rows_for(name)))


def same(published: str, measured: Iterable[str]) -> bool:
    """Whether a value of a source equals a parameter of a case, regardless of notation."""
    wanted = re.sub(r"[\s,_]", "", published).casefold()
    return any(re.sub(r"[\s,_]", "", value).casefold() == wanted for value in measured)
