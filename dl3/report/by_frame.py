"""Throughput as bars over frame size; what the bars measure is the caller's choice."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from dl3.model.trial import LAYER1_BYTES, Throughput
from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars, highest
from dl3.report.chart import Drawing, Scene
from dl3.report.names import series_names
from dl3.report.plot import Entry
from dl3.report.results import Results, frames_of
from dl3.report.words import Words

HIGHEST = 1e18  # larger values are not plausible
FAR = 4.0


@dataclass(frozen=True)
class Measure:
    """What the bars of a chart show."""

    title: str
    note: str
    y_name: str
    of: Callable[[Throughput, float], float | None]  # (result, frames per second)
    unit: str
    top: float = 0.0  # the axis reaches at least this value
    shows_line: bool = True


def line_pps(search: Throughput) -> float | None:
    """Frames per second at line rate; None if the wire has none."""
    bits = (search.mean_bytes + LAYER1_BYTES) * 8
    return search.line_bps / bits if search.line_bps > 0 and bits > 0 else None


def is_at_least(search: Throughput) -> bool:
    """Whether the device may be faster than the result: the search was stopped by something else."""
    return search.limited_by in ("generator", "asked")


def ends_of(search: Throughput, shown: Callable[[float], str]) -> list[str]:
    """What is shown of the rate in packets/s; both ends of the range if the machine was too noisy for one number."""
    return list(dict.fromkeys(shown(pps) for pps in search.range_pps or (search.pps,)))


def layer1_bps(search: Throughput, pps: float) -> float:
    """Bits per second on the wire at a rate other than that of the result."""
    return pps * (search.mean_bytes + LAYER1_BYTES) * 8


def plausible(value: float | None) -> float | None:
    """The value if it can be drawn."""
    return value if value is not None and math.isfinite(value) and 0 <= value < HIGHEST else None


def span_pps(search: Throughput) -> tuple[float, float] | None:
    """The range of the result: its interval or range, else up to the lowest rate known to be too high."""
    if found := search.interval_pps or search.range_pps:
        return found
    too_high_pps = search.too_high_pps
    return (search.pps, too_high_pps) if too_high_pps is not None and search.limited_by == "dut" else None


def drawn_span(search: Throughput, measure: Measure) -> tuple[float, float] | None:
    """The same in the unit of the chart."""
    span = span_pps(search)
    ends = [plausible(measure.of(search, pps)) for pps in span] if span else []
    found = [end for end in ends if end is not None]
    return (found[0], found[1]) if len(found) == 2 else None


def bar_of(search: Throughput, series: int, measure: Measure, link: str | None) -> Bar | None:
    """The bar of one result; None if it has no such value."""
    value = plausible(measure.of(search, search.pps))
    if value is None:
        return None
    line, came_back = line_pps(search), search.conditional_pps
    return Bar(
        series=series,
        group=search.frame,
        value=value,
        is_at_least=is_at_least(search),
        span=drawn_span(search, measure),
        limit=plausible(measure.of(search, line)) if line and measure.shows_line else None,
        tick=plausible(measure.of(search, came_back)) if came_back and search.goal_loss_ratio > 0 else None,
        link=link,
    )


def is_far(bars: Sequence[Bar]) -> bool:
    """Whether the line rate is so far above all bars that showing it would make them hard to read."""
    return max(bar.limit or 0 for bar in bars) > FAR * max(bar.value for bar in bars)


def entries_of(results: Results, words: Words) -> list[Entry]:
    """The series of the searches in a legend."""
    names = series_names(results, words)
    return [bar_entry(index, names[one]) for index, one in enumerate(results.series)]


def on_page(scene: Scene, measure: Measure) -> list[Bar]:
    """The bars of all such charts of the page: they have one axis, so that one can be compared with another."""
    found = (bar_of(search, 0, measure, None) for search in scene.groups.results.searches)
    return [bar for bar in found if bar]


def picture(scene: Scene, words: Words, measure: Measure) -> Element | None:
    """The chart; None if there are no values."""
    results = scene.part.results
    series = results.series
    found = [
        bar_of(search, series.index(results.series_of(search)), measure, scene.groups.link(search))
        for search in results.searches
    ]
    bars = [bar for bar in found if bar]
    if not bars:
        return None
    drawn, everything = {bar.group for bar in bars}, on_page(scene, measure)
    if measure.top == 0 and is_far(everything):
        bars, everything = ([replace(bar, limit=None) for bar in one] for one in (bars, everything))
    return draw_bars(
        BarChart(
            label=measure.title,
            x_name=words("axis.frame"),
            y_name=measure.y_name,
            series=entries_of(results, words),
            groups=[Group(name, words.short_frame(name)) for name in frames_of(results.searches) if name in drawn],
            bars=bars,
            limit_name=words("line_rate"),
            top=max(measure.top, *map(highest, everything)),
            unit=measure.unit,
        )
    )


def draw(scene: Scene, words: Words, measure: Measure) -> Drawing | None:
    """The figure with its series; None if there are no values."""
    shown = picture(scene, words, measure)
    if shown is None:
        return None
    entries = entries_of(scene.part.results, words)
    if any(line.get("class") == "limit" for line in shown.iter("line")):
        entries.append(Entry(words("line_rate"), "limit", ""))
    return Drawing(measure.title, [shown], measure.note, entries)
