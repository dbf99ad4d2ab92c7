"""Lines over a linear axis, on a logarithmic one: a latency's figures over the load."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import mark, tag
from dl3.report.plot import SHAPES, Entry, Paper, axis_names, below, colour, grid, legend, marker, svg
from dl3.report.scale import Linear, Log, linear_ticks, log_ticks
from dl3.report.units import duration

SMALL = Paper(width=430, height=290, left=56, right=18, top=52, bottom=46)
LEGEND_Y = 34


@dataclass(frozen=True)
class Line:
    """One series: x and y of each of its points."""

    key: str
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class LineChart:
    """Lines with all that is written around them; y is in nanoseconds."""

    label: str
    x_name: str
    y_name: str
    lines: Sequence[Line]


def draw_line(index: int, line: Line, x_scale: Linear, y_scale: Log) -> list[Element]:
    """The line and its points."""
    places = [(x_scale.at(x), y_scale.at(y)) for x, y in line.points]
    parts = [tag("polyline", class_=f"line {colour(index)}", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places))]
    for (x, y), (at, nanoseconds) in zip(places, line.points, strict=True):
        dot = marker(SHAPES[index % len(SHAPES)], colour(index), x, y)
        dot.append(tag("title", f"{line.name}, {at:g}: {nanoseconds / 1e3:,.2f} µs"))
        parts.append(mark(dot, series=line.key, x=at, value=nanoseconds))
    return parts


def draw_lines(chart: LineChart) -> Element | None:
    """The whole chart; None when there is no point above zero."""
    lines = [Line(line.key, line.name, [(x, y) for x, y in line.points if y > 0]) for line in chart.lines]
    values = [y for line in lines for _, y in line.points]
    if not values:
        return None
    x_ticks = linear_ticks(max(x for line in lines for x, _ in line.points))
    y_ticks = log_ticks(min(values), max(values))
    x_scale = Linear(x_ticks[-1], SMALL.left, SMALL.wall)
    y_scale = Log(y_ticks[0], y_ticks[-1], SMALL.floor, SMALL.top)
    entries = [Entry(line.name, SHAPES[i % len(SHAPES)], colour(i)) for i, line in enumerate(lines)]
    parts = [
        *grid(SMALL, y_scale, [(tick, duration(tick)) for tick in y_ticks]),
        *(part for index, line in enumerate(lines) for part in draw_line(index, line, x_scale, y_scale)),
        *below(SMALL, [(x_scale.at(tick), f"{tick:g}") for tick in x_ticks]),
        *axis_names(SMALL, chart.x_name, chart.y_name),
        *legend([entries], SMALL.wall, LEGEND_Y),
    ]
    return svg(SMALL, chart.label, parts)
