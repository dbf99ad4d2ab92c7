"""Definition of a chart. Each module in dl3/report/charts/ holds one, with its texts in both languages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.groups import Groups
from dl3.report.plot import Entry
from dl3.report.results import Part
from dl3.report.words import Words


@dataclass(frozen=True)
class Drawing:
    """A chart as it appears on the page."""

    title: str
    pictures: Sequence[Element]  # SVG
    note: str = ""  # one sentence under it
    keys: Sequence[Entry] = ()  # its series by their numbers: what a reader can switch off and on
    missing: Sequence[str] = ()  # points that one expects in it, with the reasons why they are not there


@dataclass(frozen=True)
class Scene:
    """The data that a chart is drawn from."""

    part: Part
    groups: Groups  # of the whole report


@dataclass(frozen=True)
class Chart:
    """One kind of chart: its name, its position among the others, its texts, and its drawing function."""

    name: str
    order: int
    words: Mapping[str, Mapping[str, str]]  # by language, then by key; each key begins with the name
    draw: Callable[[Scene, Words], Drawing | None]  # None: there is nothing to draw
    topic: str = "throughput"  # the section it belongs to
    is_for_cases: bool = True  # whether each case of a campaign has one
