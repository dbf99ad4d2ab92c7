"""Results of the other tests as bars over frame size: mean of the repetitions, with minimum and maximum."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars
from dl3.report.by_frame import HIGHEST
from dl3.report.chart import Drawing, Scene
from dl3.report.names import names_of
from dl3.report.results import Other, Series, frames_of
from dl3.report.words import Words


@dataclass(frozen=True)
class Height:
    """What a bar shows of a result."""

    value: float
    low: float
    high: float
    is_at_least: bool = False


@dataclass(frozen=True)
class Quantity:
    """What the bars of a chart show."""

    name: str  # of the chart
    y_name: str
    unit: str
    of: Callable[[Other], Height | None]
    more: Callable[[Other, Words], str] = lambda _answer, _words: ""  # what else distinguishes the series


def height_of(values: Sequence[float], factor: float = 1.0) -> Height | None:
    """The mean of repetitions; None where there are none or they cannot be drawn."""
    found = [value * factor for value in values]
    if not found or not all(math.isfinite(value) and 0 <= value < HIGHEST for value in found):
        return None
    return Height(sum(found) / len(found), min(found), max(found))


def draw(scene: Scene, words: Words, answers: Sequence[Other], quantity: Quantity) -> Drawing | None:
    """The figure; None if there is no bar."""
    results = scene.part.results
    heights = [(answer, height) for answer in answers if (height := quantity.of(answer)) is not None]
    if not heights:
        return None
    names = names_of((results.series_of(answer) for answer, _ in heights), words)

    def series(answer: Other) -> tuple[Series, str]:
        return results.series_of(answer), quantity.more(answer, words)

    order = list(dict.fromkeys(series(answer) for answer, _ in heights))
    entries = [
        bar_entry(n, words("list.parts").join(filter(None, (names[one], more)))) for n, (one, more) in enumerate(order)
    ]
    bars = [
        Bar(
            series=order.index(series(answer)),
            group=answer.frame,
            value=height.value,
            is_at_least=height.is_at_least,
            span=(height.low, height.high) if height.high > height.low else None,
            link=scene.groups.link(answer),
        )
        for answer, height in heights
    ]
    title = words(f"{quantity.name}.title")
    groups = [Group(frame, words.short_frame(frame)) for frame in frames_of(answer for answer, _ in heights)]
    everything = [height for answer in scene.groups.results.others if (height := quantity.of(answer)) is not None]
    top = max(height.high for height in everything)  # one axis for all such charts of the page
    chart = BarChart(title, words("axis.frame"), quantity.y_name, entries, groups, bars, top=top, unit=quantity.unit)
    return Drawing(title, [draw_bars(chart)], words(f"{quantity.name}.note"), entries)
