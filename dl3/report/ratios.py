"""Ratios with their intervals in rows, around the line at which both are equal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.report.markup import mark, tag
from dl3.report.plot import Paper, point, svg, tip
from dl3.report.scale import Linear, round_step
from dl3.report.units import significant

ROW, TOP, BOTTOM, LEFT, RIGHT = 26, 12, 40, 290, 64
N_LETTERS = 42
HIGHEST = 1e6
LEAST = 0.05  # the axis extends at least this far to each side of 1
N_STEPS = 4


@dataclass(frozen=True)
class Ratio:
    """One row."""

    name: str
    value: float
    low: float
    high: float
    class_: str = "c0"
    link: str | None = None
    bound: str = ""  # prefix of its number: '≥ '


def can_be_drawn(ratio: Ratio) -> bool:
    """Whether its figures are plausible."""
    return all(0 <= value < HIGHEST for value in (ratio.value, ratio.low, ratio.high))


def draw_row(ratio: Ratio, y: float, scale: Linear, paper: Paper) -> list[Element]:
    """The name, the interval, the ratio, and its number."""
    x, low, high = scale.at(ratio.value), scale.at(ratio.low), scale.at(ratio.high)
    short = ratio.name if len(ratio.name) <= N_LETTERS else ratio.name[: N_LETTERS - 1] + "…"
    ends = [tag("line", class_="whisker", x1=at, x2=at, y1=y - 4, y2=y + 4) for at in (low, high)]
    dot = mark(tag("circle", class_=f"dot {ratio.class_}", cx=x, cy=y, r=4.5), series=ratio.name, value=ratio.value)
    text = f"{ratio.name}: {ratio.bound}{ratio.value:.3f} ({ratio.low:.3f}–{ratio.high:.3f})"
    shapes = [tag("line", class_="whisker", x1=low, x2=high, y1=y, y2=y), *ends, dot]
    return [
        tag("text", short, class_="legend", x=LEFT - 12, y=y + 4, text_anchor="end"),
        point(0, shapes, tip(paper, text, x, y), ratio.link),
        tag("text", f"{ratio.bound}{significant(ratio.value)}", class_="legend", x=paper.width - RIGHT + 12, y=y + 4),
    ]


def around_one(low: float, high: float) -> list[float]:
    """Round values that span all ratios, including 1."""
    step = round_step(max(high - 1, 1 - low, LEAST) / N_STEPS)
    first = max(math.floor((min(low, 1) - 1) / step + 1e-9), math.ceil(-1 / step))
    last = max(math.ceil((max(high, 1) - 1) / step - 1e-9), first + 1, 1)
    return [1 + step * n for n in range(min(first, -1), last + 1)]


def draw_ratios(label: str, x_name: str, ratios: Sequence[Ratio], among: Sequence[Ratio] = ()) -> Element | None:
    """The chart; None without a row. `among`: those of all such charts of the page, which have one axis."""
    shown = [ratio for ratio in ratios if can_be_drawn(ratio)]
    if not shown:
        return None
    paper = Paper(height=TOP + ROW * len(shown) + BOTTOM, left=LEFT, right=RIGHT, top=TOP, bottom=BOTTOM)
    everything = [*shown, *filter(can_be_drawn, among)]
    ticks = around_one(min(ratio.low for ratio in everything), max(ratio.high for ratio in everything))
    scale = Linear(ticks[-1], paper.left, paper.wall, ticks[0])
    parts = []
    for tick in ticks:
        x = scale.at(tick)
        parts.append(tag("line", class_="grid", x1=x, x2=x, y1=TOP, y2=paper.floor))
        parts.append(tag("text", f"{tick:g}", class_="tick", x=x, y=paper.floor + 15, text_anchor="middle"))
    one = scale.at(1)
    parts.append(tag("line", class_="limit", x1=one, x2=one, y1=TOP - 6, y2=paper.floor))
    for n, ratio in enumerate(shown):
        parts += draw_row(ratio, TOP + ROW * (n + 0.5), scale, paper)
    middle = (paper.left + paper.wall) / 2
    parts.append(tag("text", x_name, class_="axis", x=middle, y=paper.height - 6, text_anchor="middle"))
    return svg(paper, label, parts)
