"""Lines over the offered load, one picture for each device and one line for each frame size."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.results import Forwarding, FrameLoss, LossPoint
from dl3.report.by_frame import HIGHEST
from dl3.report.chart import Drawing, Scene
from dl3.report.groups import Groups
from dl3.report.lines import Dot, Line, LineChart, draw_lines, entry_of
from dl3.report.names import names_of
from dl3.report.on_purpose import beside
from dl3.report.results import Results, Series, frames_of
from dl3.report.scale import Axis, linear_axis
from dl3.report.units import loss, mpps
from dl3.report.words import Words

OverLoad = FrameLoss | Forwarding


@dataclass(frozen=True)
class View:
    """What a chart of such lines shows."""

    name: str  # of the chart
    y_name: str
    xy: Callable[[LossPoint], tuple[float, float]]
    of: Callable[[Results], Sequence[OverLoad]]  # the results that have such lines
    top: float  # the vertical axis reaches at least this value


def can_be_drawn(point: LossPoint) -> bool:
    """Whether all its figures are plausible."""
    figures = (point.share, point.pps, point.loss_ratio)
    return all(math.isfinite(value) and 0 <= value < HIGHEST for value in figures)


def dots(result: OverLoad, view: View, groups: Groups, words: Words) -> list[Dot]:
    """The points of a result in the order of their loads."""
    found, name, link = [], result.frame, groups.link(result)
    for point in sorted(filter(can_be_drawn, result.points), key=lambda one: one.pps):
        says = f"{name}, {mpps(point.pps)} Mpps ({point.share:.0%}): {loss(point.loss_ratio)} %"
        times = groups.throughputs.times(result, point.pps) if point.loss_ratio > 0 else None
        says = beside(says, times, words)
        found.append(Dot(*view.xy(point), says, link))
    return found


def axes(scene: Scene, words: Words, view: View) -> tuple[Axis, Axis]:
    """Those of all such charts of the page, so that one can be compared with another."""
    places = [view.xy(one) for result in view.of(scene.groups.results) for one in filter(can_be_drawn, result.points)]
    x_top, y_top = max((x for x, _ in places), default=0.0), max((y for _, y in places), default=0.0)
    return linear_axis(words("axis.offered"), x_top), linear_axis(view.y_name, max(view.top, y_top))


def picture(name: str, results: Sequence[OverLoad], scene: Scene, words: Words, show: View) -> Element | None:
    """The lines of one device; a frame size has the same colour in all pictures."""
    frames = frames_of(show.of(scene.part.results))
    lines = []
    for result in results:
        found = dots(result, show, scene.groups, words)
        lines.append(Line(result.frame, result.frame, found, frames.index(result.frame)))
    return draw_lines(LineChart(name, *axes(scene, words, show), lines))


def draw(scene: Scene, words: Words, view: View) -> Drawing | None:
    """The figure; None if there are no points."""
    results = scene.part.results
    shown = view.of(results)
    frames = frames_of(shown)
    by_series: dict[Series, list[OverLoad]] = {}
    for result in shown:
        by_series.setdefault(results.series_of(result), []).append(result)
    names = names_of(by_series, words)
    found = [picture(names[one], group, scene, words, view) for one, group in by_series.items()]
    pictures = [one for one in found if one is not None]
    keys = [entry_of(n, words.frame(frame)) for n, frame in enumerate(frames)]
    title = words(f"{view.name}.title")
    return Drawing(title, pictures, words(f"{view.name}.note"), keys) if pictures else None
