"""Upright bars, grouped by frame size or by what a case varies: one bar for each series."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import mark, tag
from dl3.report.plot import Entry, Paper, axis_names, below, colour, grid, legend, legend_rows, point, svg, tip
from dl3.report.scale import Linear, Log, linear_axis
from dl3.report.units import significant

WIDEST = 46
SHARE = 0.84  # of the width of a group that its bars may fill
LARGEST, SMALLEST = 11.0, 7.5  # font size of a value above its bar; if it has to be smaller, only the table shows it
LETTER = 0.72  # width of a bold digit relative to its font size


@dataclass(frozen=True)
class Bar:
    """One value; `span` is its range, `upper` the lowest rate that failed, `limit` what the wire can carry."""

    series: int
    group: str
    value: float
    is_at_least: bool = False
    span: tuple[float, float] | None = None
    limit: float | None = None
    tick: float | None = None  # a second value, drawn as a line across the bar
    tip: str = ""
    link: str | None = None


@dataclass(frozen=True)
class Group:
    """Bars that stand together: their key and label."""

    key: str
    label: str


@dataclass(frozen=True)
class BarChart:
    """Bars with their labels."""

    label: str
    x_name: str
    y_name: str
    series: Sequence[Entry]
    groups: Sequence[Group]
    bars: Sequence[Bar]
    limit_name: str = ""
    top: float = 0.0  # the axis reaches at least this value
    unit: str = ""


@dataclass(frozen=True)
class Place:
    """The position of a bar."""

    x: float
    width: float
    y: float

    @property
    def middle(self) -> float:
        """The middle of its width."""
        return self.x + self.width / 2


def bar_entry(index: int, name: str) -> Entry:
    """A series of bars in a legend."""
    return Entry(name, "bar", colour(index))


def bar_place(chart: BarChart, paper: Paper, scale: Linear | Log, bar: Bar) -> Place:
    """The position of a bar in its group."""
    group = [one.key for one in chart.groups].index(bar.group)
    group_width = (paper.wall - paper.left) / len(chart.groups)
    width = min(group_width * SHARE / len(chart.series), WIDEST)
    x = paper.left + group_width * (group + 0.5) + width * (bar.series - len(chart.series) / 2)
    return Place(x, width, scale.at(bar.value))


def whisker(place: Place, low: float, high: float) -> list[Element]:
    """A vertical line from a low to a high position, with a short line at each end."""
    x, ends = place.middle, (low, high)
    caps = [tag("line", class_="whisker", x1=x - 4, x2=x + 4, y1=y, y2=y) for y in ends]
    return [tag("line", class_="whisker", x1=x, x2=x, y1=low, y2=high), *caps]


def bar_tip(chart: BarChart, bar: Bar) -> str:
    """The tooltip of a bar."""
    label = next(one.label for one in chart.groups if one.key == bar.group)
    bound = "≥ " if bar.is_at_least else ""
    return bar.tip or f"{chart.series[bar.series].name}, {label}: {bound}{bar.value:,.3f} {chart.unit}".rstrip()


def draw_bar(chart: BarChart, paper: Paper, scale: Linear | Log, bar: Bar) -> Element:
    """The bar, the range of its result, the limit of the wire, and its value."""
    place, entry = bar_place(chart, paper, scale, bar), chart.series[bar.series]
    width = max(place.width - 3, place.width * 0.7)
    rect = tag("rect", class_=f"{entry.shape} {entry.class_}", x=place.middle - width / 2, y=place.y, width=width)
    rect.set("height", f"{paper.floor - place.y:.2f}")
    mark(rect, series=entry.name, frame=bar.group, bound="≥" if bar.is_at_least else "=", value=bar.value)
    parts, top = [rect], place.y
    if bar.span is not None:
        low, top = scale.at(bar.span[0]), min(scale.at(bar.span[1]), place.y)
        parts += whisker(place, low, top)
    if bar.tick is not None:
        y = scale.at(bar.tick)
        parts.append(tag("line", class_="second", x1=place.x, x2=place.x + place.width, y1=y, y2=y))
    if bar.limit is not None:
        y = scale.at(bar.limit)
        parts.append(tag("line", class_="limit", x1=place.x - 3, x2=place.x + place.width + 3, y1=y, y2=y))
    text = ("≥" if bar.is_at_least else "") + significant(bar.value)
    size = min(LARGEST, place.width / (len(text) * LETTER))
    if size >= SMALLEST:
        parts.append(tag("text", text, class_="value", x=place.middle, y=top - 5, font_size=size))
    says = tip(paper, bar_tip(chart, bar), place.middle, top - (12 if size >= SMALLEST else 0))
    return point(bar.series, parts, says, bar.link)


def highest(bar: Bar) -> float:
    """The highest value that the axis has to show for a bar."""
    return max(bar.value, bar.span[1] if bar.span else 0, bar.limit or 0, bar.tick or 0)


def draw_bars(chart: BarChart) -> Element:
    """The whole chart."""
    entries = list(chart.series)
    if any(bar.limit is not None for bar in chart.bars):
        entries.append(Entry(chart.limit_name, "limit", ""))
    rows = legend_rows(entries, Paper.width - 20)
    paper = Paper().under(rows)
    axis = linear_axis(chart.y_name, max([chart.top, *(highest(bar) for bar in chart.bars)]))
    scale = axis.scale(paper.floor, paper.top)
    group_width = (paper.wall - paper.left) / len(chart.groups)
    labels = [(paper.left + group_width * (i + 0.5), group.label) for i, group in enumerate(chart.groups)]
    parts = [
        *grid(paper, axis),
        *(draw_bar(chart, paper, scale, bar) for bar in chart.bars),
        *below(paper, labels),
        *axis_names(paper, chart.x_name, chart.y_name),
        legend(rows, paper),
    ]
    return svg(paper, chart.label, parts)
