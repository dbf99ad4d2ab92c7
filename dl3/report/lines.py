"""Line charts: a statistic over a load, a share of frames, or a rate; either axis may be logarithmic."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import mark, tag
from dl3.report.plot import (
    SHAPES,
    Entry,
    Paper,
    axis_names,
    below,
    colour,
    grid,
    legend,
    legend_rows,
    marker,
    point,
    svg,
    tip,
)
from dl3.report.scale import Axis

SMALL = Paper(width=430, height=270, left=58, right=22, top=32, bottom=46)


@dataclass(frozen=True)
class Dot:
    """One value of a line, its tooltip, and its link target."""

    x: float
    y: float
    tip: str
    link: str | None = None


@dataclass(frozen=True)
class Line:
    """One series."""

    key: str
    name: str
    dots: Sequence[Dot]
    index: int  # among all series of the figure: its colour and shape


@dataclass(frozen=True)
class LineChart:
    """Lines with their labels."""

    label: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    paper: Paper = SMALL


def entry_of(index: int, name: str) -> Entry:
    """This series in a legend."""
    return Entry(name, SHAPES[index % len(SHAPES)], colour(index))


def draw_line(line: Line, chart: LineChart, paper: Paper) -> list[Element]:
    """The line and its points."""
    x_scale, y_scale = chart.x.scale(paper.left, paper.wall), chart.y.scale(paper.floor, paper.top)
    places = [(x_scale.at(dot.x), y_scale.at(dot.y)) for dot in line.dots]
    class_ = colour(line.index)
    stroke = tag("polyline", class_=f"line {class_}", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places))
    parts = [tag("g", stroke, class_=f"s{line.index}")]
    for (x, y), dot in zip(places, line.dots, strict=True):
        shape = mark(marker(SHAPES[line.index % len(SHAPES)], class_, x, y), series=line.key, x=dot.x, value=dot.y)
        parts.append(point(line.index, [shape], tip(paper, dot.tip, x, y), dot.link))
    return parts


def draw_lines(chart: LineChart) -> Element | None:
    """The whole chart; None if there are no points."""
    if not any(line.dots for line in chart.lines):
        return None
    rows = legend_rows([entry_of(line.index, line.name) for line in chart.lines], chart.paper.width - 20)
    paper = chart.paper.under(rows)
    x_scale = chart.x.scale(paper.left, paper.wall)
    parts = [
        *grid(paper, chart.y),
        *(part for line in chart.lines for part in draw_line(line, chart, paper)),
        *below(paper, [(x_scale.at(tick), label) for tick, label in chart.x.ticks]),
        *axis_names(paper, chart.x.name, chart.y.name),
        legend(rows, paper),
    ]
    return svg(paper, chart.label, parts)
