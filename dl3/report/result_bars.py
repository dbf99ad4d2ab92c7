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
    more: Callable[[Other, Words], str] = lambda _result, _words: ""  # what else distinguishes the series


def height_of(values: Sequence[float], factor: float = 1.0) -> Height | None:
    """The mean of repetitions; None where there are none or they cannot be drawn."""
    found = [value * factor for value in values]
    if not found or not all(math.isfinite(value) and 0 <= value < HIGHEST for value in found):
        return None
    return Height(sum(found) / len(found), min(found), max(found))


def draw(scene: Scene, words: Words, shown: Sequence[Other], quantity: Quantity) -> Drawing | None:
    """The figure; None if there is no bar."""
    results = scene.part.results
    heights = [(result, height) for result in shown if (height := quantity.of(result)) is not None]
    if not heights:
        return None
    names = names_of((results.series_of(result) for result, _ in heights), words)

    def series(result: Other) -> tuple[Series, str]:
        return results.series_of(result), quantity.more(result, words)

    order = list(dict.fromkeys(series(result) for result, _ in heights))
    entries = [
        bar_entry(n, words("list.parts").join(filter(None, (names[one], more)))) for n, (one, more) in enumerate(order)
    ]
    bars = [
        Bar(
            series=order.index(series(result)),
            group=result.frame,
            value=height.value,
            is_at_least=height.is_at_least,
            span=(height.low, height.high) if height.high > height.low else None,
            link=scene.groups.link(result),
        )
        for result, height in heights
    ]
    title = words(f"{quantity.name}.title")
    groups = [Group(frame, words.short_frame(frame)) for frame in frames_of(result for result, _ in heights)]
    everything = [height for result in scene.groups.results.others if (height := quantity.of(result)) is not None]
    top = max(height.high for height in everything)  # one axis for all such charts of the page
    chart = BarChart(title, words("axis.frame"), quantity.y_name, entries, groups, bars, top=top, unit=quantity.unit)
    return Drawing(title, [draw_bars(chart)], words(f"{quantity.name}.note"), entries)
