"""What all charts share: the paper, the grid, names of axes, the legend."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import add, tag
from dl3.report.scale import Linear, Log

N_COLOURS = 6
LINE_HEIGHT = 18
SHAPES = ("circle", "square", "diamond", "triangle")
CORNERS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    "triangle": ((0, -1.3), (1.2, 1), (-1.2, 1)),
}
R = 3.4  # half a marker
WIDE, NARROW = 11.5, 6.4  # rough widths of a Chinese character and of a Latin one in a legend


@dataclass(frozen=True)
class Paper:
    """Size of a chart and of the margins around its field, in points."""

    width: float = 760
    height: float = 250
    left: float = 58
    right: float = 14
    top: float = 34
    bottom: float = 46

    @property
    def floor(self) -> float:
        """The lowest line of the field."""
        return self.height - self.bottom

    @property
    def wall(self) -> float:
        """The right end of the field."""
        return self.width - self.right


@dataclass(frozen=True)
class Entry:
    """A series in a legend; its shape is 'bar', 'limit', or that of a marker on a line."""

    name: str
    shape: str
    class_: str


def colour(index: int) -> str:
    """The class of a series: six colours that also differ when one does not see red or green, then again."""
    return f"c{index % N_COLOURS}"


def svg(paper: Paper, label: str, parts: Iterable[Element]) -> Element:
    """A chart; the label is what a screen reader says."""
    made = tag("svg", viewBox=f"0 0 {paper.width:g} {paper.height:g}", role="img", aria_label=label)
    return add(made, parts)


def text_width(text: str) -> float:
    """About how wide a text of a legend is, in points."""
    return sum(WIDE if ord(letter) > 0x2E80 else NARROW for letter in text)


def grid(paper: Paper, scale: Linear | Log, ticks: Iterable[tuple[float, str]]) -> list[Element]:
    """Horizontal lines with their values to the left."""
    parts = []
    for value, label in ticks:
        y = scale.at(value)
        parts.append(tag("line", class_="grid", x1=paper.left, x2=paper.wall, y1=y, y2=y))
        parts.append(tag("text", label, class_="tick", x=paper.left - 8, y=y + 4, text_anchor="end"))
    return parts


def below(paper: Paper, labels: Iterable[tuple[float, str]]) -> list[Element]:
    """The labels under the field, each at its x."""
    return [
        tag("text", label, class_="tick", x=x, y=paper.floor + LINE_HEIGHT, text_anchor="middle") for x, label in labels
    ]


def axis_names(paper: Paper, x_name: str, y_name: str) -> list[Element]:
    """The name of the upright axis above it, that of the other one under it."""
    middle = (paper.left + paper.wall) / 2
    floor = tag("line", class_="floor", x1=paper.left, x2=paper.wall, y1=paper.floor, y2=paper.floor)
    under = tag("text", x_name, class_="axis", x=middle, y=paper.height - 6, text_anchor="middle")
    return [floor, under, tag("text", y_name, class_="axis", x=4, y=14)]


def marker(shape: str, class_: str, x: float, y: float) -> Element:
    """A point: each series has a shape of its own, so that it is told apart in print without colour."""
    if shape == "circle":
        return tag("circle", class_=f"dot {class_}", cx=x, cy=y, r=R)
    corners = " ".join(f"{x + R * dx:.2f},{y + R * dy:.2f}" for dx, dy in CORNERS[shape])
    return tag("polygon", class_=f"dot {class_}", points=corners)


def swatch(entry: Entry, x: float, y: float) -> list[Element]:
    """The sample of a series in a legend: its bar, or its line with its marker."""
    if entry.shape == "bar":
        return [tag("rect", class_=f"bar {entry.class_}", x=x, y=y - 9, width=11, height=11, rx=1.5)]
    kind = "line" if entry.shape in SHAPES else entry.shape
    line = tag("line", class_=f"{kind} {entry.class_}", x1=x - 8, x2=x + 12, y1=y - 4, y2=y - 4)
    return [line, marker(entry.shape, entry.class_, x + 2, y - 4)] if entry.shape in SHAPES else [line]


def entry_width(name: str) -> float:
    """What a series takes in a legend."""
    return text_width(name) + 36


def legend_rows(entries: Sequence[Entry], room: float) -> list[list[Entry]]:
    """The series in rows that are not wider than the room."""
    rows: list[list[Entry]] = [[]]
    left = room
    for entry in entries:
        left -= entry_width(entry.name)
        if left < 0 and rows[-1]:
            rows.append([])
            left = room - entry_width(entry.name)
        rows[-1].append(entry)
    return rows


def legend(rows: Iterable[Sequence[Entry]], right: float, y: float) -> list[Element]:
    """The rows of a legend, each ending at `right`, the first at height `y`."""
    parts = []
    for n, row in enumerate(rows):
        x = right - sum(entry_width(entry.name) for entry in row) + 18
        for entry in row:
            parts += swatch(entry, x, y + n * LINE_HEIGHT)
            parts.append(tag("text", entry.name, class_="legend", x=x + 17, y=y + n * LINE_HEIGHT))
            x += entry_width(entry.name)
    return parts
