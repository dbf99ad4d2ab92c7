"""Upright bars, grouped by frame size: one bar for each series."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import mark, tag
from dl3.report.plot import LINE_HEIGHT, Entry, Paper, axis_names, below, colour, grid, legend, legend_rows, svg
from dl3.report.scale import Linear, linear_ticks
from dl3.report.units import significant

WIDEST = 46
SHARE = 0.84  # of the room of a group that its bars may fill
ROOM_OF_NAME = 200  # what the legend leaves to the name of the upright axis
LARGEST, SMALLEST = 11.0, 7.5  # size of a value above its bar; where it had to be smaller, the table alone has it
LETTER = 0.72  # width of a digit in bold, by its size


@dataclass(frozen=True)
class Bar:
    """One value; `upper` is where the next higher try failed, `limit` what the wire takes."""

    series: int
    group: str
    value: float
    is_at_least: bool = False
    upper: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class BarChart:
    """Bars with all that is written around them."""

    label: str
    x_name: str
    y_name: str
    series: Sequence[str]
    groups: Sequence[tuple[str, str]]  # name, and as it is written
    bars: Sequence[Bar]
    limit_name: str
    top: float = 0.0  # the axis reaches at least this


@dataclass(frozen=True)
class Place:
    """Where a bar stands."""

    x: float
    width: float
    y: float


def bar_place(chart: BarChart, paper: Paper, scale: Linear, bar: Bar) -> Place:
    """The place of a bar in its group."""
    group = [name for name, _ in chart.groups].index(bar.group)
    room = (paper.wall - paper.left) / len(chart.groups)
    width = min(room * SHARE / len(chart.series), WIDEST)
    x = paper.left + room * (group + 0.5) + width * (bar.series - len(chart.series) / 2)
    return Place(x, width, scale.at(bar.value))


def draw_bar(chart: BarChart, paper: Paper, scale: Linear, bar: Bar) -> list[Element]:
    """The bar, how far its answer is open upwards, what the wire takes, and its value."""
    place = bar_place(chart, paper, scale, bar)
    bound = "≥ " if bar.is_at_least else ""
    title = tag("title", f"{chart.series[bar.series]}, {dict(chart.groups)[bar.group]}: {bound}{bar.value:,.3f}")
    rect = tag("rect", title, class_=f"bar {colour(bar.series)}", x=place.x + 1.5, y=place.y, width=place.width - 3)
    rect.set("height", f"{paper.floor - place.y:.2f}")
    mark(rect, series=chart.series[bar.series], frame=bar.group, bound=bound.strip() or "=", value=bar.value)
    middle, parts, top = place.x + place.width / 2, [rect], place.y
    if bar.upper is not None and bar.upper > bar.value:
        top = scale.at(bar.upper)
        parts.append(tag("line", class_="whisker", x1=middle, x2=middle, y1=place.y, y2=top))
        parts.append(tag("line", class_="whisker", x1=middle - 4, x2=middle + 4, y1=top, y2=top))
    if bar.limit is not None:
        y = scale.at(bar.limit)
        parts.append(tag("line", class_="limit", x1=place.x - 3, x2=place.x + place.width + 3, y1=y, y2=y))
    text = bound.strip() + significant(bar.value)
    size = min(LARGEST, place.width / (len(text) * LETTER))
    if size >= SMALLEST:
        parts.append(tag("text", text, class_="value", x=middle, y=top - 5, font_size=size))
    return parts


def draw_bars(chart: BarChart) -> Element:
    """The whole chart."""
    entries = [Entry(name, "bar", colour(index)) for index, name in enumerate(chart.series)]
    if any(bar.limit is not None for bar in chart.bars):
        entries.append(Entry(chart.limit_name, "limit", ""))
    rows = legend_rows(entries, Paper.width - ROOM_OF_NAME)
    extra = (len(rows) - 1) * LINE_HEIGHT
    paper = Paper(height=Paper.height + extra, top=Paper.top + extra)
    highest = max([chart.top, *(max(bar.value, bar.upper or 0, bar.limit or 0) for bar in chart.bars)])
    ticks = linear_ticks(highest)
    scale = Linear(ticks[-1], paper.floor, paper.top)
    room = (paper.wall - paper.left) / len(chart.groups)
    labels = [(paper.left + room * (i + 0.5), written) for i, (_, written) in enumerate(chart.groups)]
    parts = [
        *grid(paper, scale, [(tick, f"{tick:g}") for tick in ticks]),
        *(part for bar in chart.bars for part in draw_bar(chart, paper, scale, bar)),
        *below(paper, labels),
        *axis_names(paper, chart.x_name, chart.y_name),
        *legend(rows, paper.wall, 14),
    ]
    return svg(paper, chart.label, parts)
