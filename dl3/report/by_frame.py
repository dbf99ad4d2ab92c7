"""Throughput as bars over frame size; what the bars measure is the caller's choice."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from dl3.model.trial import LAYER1_BYTES, Throughput
from dl3.report.bars import Bar, BarChart, draw_bars
from dl3.report.names import series_names
from dl3.report.results import Results, frames_of, series_of
from dl3.report.words import Words

HIGHEST = 1e18  # above it a figure is no figure
FAR = 4.0


@dataclass(frozen=True)
class Measure:
    """What the bars of a chart show."""

    label: str
    y_name: str
    of: Callable[[Throughput, float], float | None]  # (answer, frames a second)
    top: float = 0.0  # the axis reaches at least this
    shows_line: bool = True


def line_pps(search: Throughput) -> float | None:
    """Frames a second that the wire takes; None where it has no line rate."""
    bits = (search.mean_bytes + LAYER1_BYTES) * 8
    return search.line_bps / bits if search.line_bps > 0 and bits > 0 else None


def is_at_least(search: Throughput) -> bool:
    """Whether the device may be faster than the answer: the search was stopped by something else."""
    return search.limited_by in ("generator", "asked")


def plausible(value: float | None) -> float | None:
    """The value if it can be drawn."""
    return value if value is not None and math.isfinite(value) and 0 <= value < HIGHEST else None


def bar_of(search: Throughput, series: int, measure: Measure) -> Bar | None:
    """The bar of one answer; None where it has no such value."""
    value = plausible(measure.of(search, search.pps))
    if value is None:
        return None
    line = line_pps(search)
    return Bar(
        series=series,
        group=search.frame,
        value=value,
        is_at_least=is_at_least(search),
        upper=plausible(measure.of(search, search.upper_pps)) if search.limited_by == "dut" else None,
        limit=plausible(measure.of(search, line)) if line and measure.shows_line else None,
    )


def is_far(bars: Sequence[Bar]) -> bool:
    """Whether the line rate is so far above all bars that they would be hard to read beside it."""
    return max(bar.limit or 0 for bar in bars) > FAR * max(bar.value for bar in bars)


def draw(results: Results, words: Words, measure: Measure) -> Element | None:
    """The chart; None without a value."""
    series, names = results.series, series_names(results, words)
    found = [bar_of(search, series.index(series_of(search)), measure) for search in results.searches]
    bars = [bar for bar in found if bar]
    if not bars:
        return None
    drawn = {bar.group for bar in bars}
    if measure.top == 0 and is_far(bars):
        bars = [replace(bar, limit=None) for bar in bars]
    groups = [(name, words.short_frame(name)) for name in frames_of(results.searches) if name in drawn]
    return draw_bars(
        BarChart(
            label=measure.label,
            x_name=words("axis.frame"),
            y_name=measure.y_name,
            series=[names[one] for one in series],
            groups=groups,
            bars=bars,
            limit_name=words("line_rate"),
            top=measure.top,
        )
    )
