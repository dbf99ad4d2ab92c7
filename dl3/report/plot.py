"""Shared by all charts: paper, grid, axis names, points, legend."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from dl3.report.markup import add, tag
from dl3.report.scale import Axis

N_COLOURS = 6
LINE_HEIGHT = 18
SHAPES = ("circle", "square", "diamond", "triangle")
CORNERS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    "triangle": ((0, -1.3), (1.2, 1), (-1.2, 1)),
}
R = 3.4  # half a marker
WIDE, NARROW = 11.5, 6.4  # approximate widths of a Chinese and of a Latin character in a legend
NEAR_THE_WALL = 0.3  # of the width: a tooltip there grows inwards


@dataclass(frozen=True)
class Paper:
    """Size of a chart and of the margins around its field, in points; the legend is at the top.

    A page shows an interactive legend next to the chart instead, and crops the legend strip.
    """

    width: float = 760
    height: float = 250
    left: float = 58
    right: float = 14
    top: float = 34
    bottom: float = 46
    legend: float = 0.0  # height of its strip, included in `height` and `top`

    @property
    def floor(self) -> float:
        """The bottom of the field."""
        return self.height - self.bottom

    @property
    def wall(self) -> float:
        """The right edge of the field."""
        return self.width - self.right

    def under(self, rows: Sequence[Sequence["Entry"]]) -> "Paper":
        """The same with a strip for a legend of this many rows."""
        strip = len(rows) * LINE_HEIGHT + 4
        return replace(self, legend=strip, height=self.height + strip, top=self.top + strip)


@dataclass(frozen=True)
class Entry:
    """A series in a legend; its shape is 'bar', 'hollow', 'limit', or the marker of a line."""

    name: str
    shape: str
    class_: str


def colour(index: int) -> str:
    """The class of a series: six colours that are also distinct with red-green colour blindness, then repeated."""
    return f"c{index % N_COLOURS}"


def svg(paper: Paper, label: str, parts: Iterable[Element]) -> Element:
    """A chart; the label is for screen readers. `data-full` is the view box that includes the legend."""
    seen = f"0 {paper.legend:g} {paper.width:g} {paper.height - paper.legend:g}"
    full = f"0 0 {paper.width:g} {paper.height:g}"
    return add(tag("svg", viewBox=seen, role="img", aria_label=label, data_full=full), parts)


def text_width(text: str) -> float:
    """The approximate width of a legend text, in points."""
    return sum(WIDE if ord(letter) > 0x2E80 else NARROW for letter in text)


def grid(paper: Paper, axis: Axis) -> list[Element]:
    """Horizontal lines with their values at the left."""
    parts, scale = [], axis.scale(paper.floor, paper.top)
    for value, label in axis.ticks:
        y = scale.at(value)
        parts.append(tag("line", class_="grid", x1=paper.left, x2=paper.wall, y1=y, y2=y))
        parts.append(tag("text", label, class_="tick", x=paper.left - 8, y=y + 4, text_anchor="end"))
    return parts


def below(paper: Paper, labels: Iterable[tuple[float, str]]) -> list[Element]:
    """The labels below the field, each at its x."""
    return [
        tag("text", label, class_="tick", x=x, y=paper.floor + LINE_HEIGHT, text_anchor="middle")
        for x, label in labels
        if label
    ]


def axis_names(paper: Paper, x_name: str, y_name: str) -> list[Element]:
    """The name of the vertical axis above it, that of the horizontal axis below it."""
    middle = (paper.left + paper.wall) / 2
    floor = tag("line", class_="floor", x1=paper.left, x2=paper.wall, y1=paper.floor, y2=paper.floor)
    under = tag("text", x_name, class_="axis", x=middle, y=paper.height - 6, text_anchor="middle")
    return [floor, under, tag("text", y_name, class_="axis", x=4, y=paper.legend + 14)]


def tip(paper: Paper, text: str, x: float, y: float) -> Element:
    """The tooltip of a point; it never leaves the chart."""
    share = x / paper.width
    anchor = "start" if share < NEAR_THE_WALL else "end" if share > 1 - NEAR_THE_WALL else "middle"
    return tag("text", text, class_="tip", x=x, y=max(y - 9, paper.legend + 28), text_anchor=anchor)


def point(series: int, shapes: Sequence[Element], says: Element, link: str | None) -> Element:
    """A value of a series: its shapes, its tooltip, and the link to its trials."""
    inner = [tag("a", *shapes, href=link)] if link else list(shapes)
    return tag("g", *inner, says, class_=f"p s{series}")


def marker(shape: str, class_: str, x: float, y: float) -> Element:
    """A point: each series has its own shape, so that it can be identified in print without colour."""
    if shape == "circle":
        return tag("circle", class_=f"dot {class_}", cx=x, cy=y, r=R)
    corners = " ".join(f"{x + R * dx:.2f},{y + R * dy:.2f}" for dx, dy in CORNERS[shape])
    return tag("polygon", class_=f"dot {class_}", points=corners)


def swatch(entry: Entry, x: float, y: float) -> list[Element]:
    """The sample of a series in a legend: its bar, or its line with its marker."""
    if entry.shape in ("bar", "hollow"):
        return [tag("rect", class_=f"{entry.shape} {entry.class_}", x=x, y=y - 9, width=11, height=11, rx=1.5)]
    kind = "line" if entry.shape in SHAPES else entry.shape
    line = tag("line", class_=f"{kind} {entry.class_}", x1=x - 8, x2=x + 12, y1=y - 4, y2=y - 4)
    return [line, marker(entry.shape, entry.class_, x + 2, y - 4)] if entry.shape in SHAPES else [line]


def entry_width(name: str) -> float:
    """The width of a series in a legend."""
    return text_width(name) + 36


def legend_rows(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """The series in rows that fit into the width."""
    rows: list[list[Entry]] = [[]]
    left = width
    for entry in entries:
        left -= entry_width(entry.name)
        if left < 0 and rows[-1]:
            rows.append([])
            left = width - entry_width(entry.name)
        rows[-1].append(entry)
    return rows


def legend(rows: Iterable[Sequence[Entry]], paper: Paper) -> Element:
    """The rows of a legend in their strip, aligned to the right edge."""
    parts = []
    for n, row in enumerate(rows):
        x, y = paper.wall - sum(entry_width(entry.name) for entry in row) + 18, 14 + n * LINE_HEIGHT
        for entry in row:
            parts += swatch(entry, x, y)
            parts.append(tag("text", entry.name, class_="legend", x=x + 17, y=y))
            x += entry_width(entry.name)
    return tag("g", *parts, class_="strip")
