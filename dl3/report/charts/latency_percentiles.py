"""The whole distribution of latency: how slow the slowest of 10, 100, 1000 ... frames "
"are, a line for each load."""

import math
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.groups import anchor_of
from dl3.report.latencies import SHARES, LatencyCase, LoadPoint, latency_cases
from dl3.report.lines import Dot, Line, LineChart, draw_lines, entry_of
from dl3.report.names import names_of
from dl3.report.scale import Axis, log_axis
from dl3.report.units import duration, micros
from dl3.report.words import Words

WORDS = {
    "en": {
        "latency_percentiles.title": "Latency distribution",
        "latency_percentiles.x": "Share of frames up to this latency (each step: 10x fewer above)",
        "latency_percentiles.y": "Latency, logarithmic",
        "latency_percentiles.case": "{dut}, {frame} frames",
        "latency_percentiles.share": "{load} % load",
        "latency_percentiles.rate": "{load} Mpps",
        "latency_percentiles.note": "The last point of each line is the maximum, drawn at the smallest share that the "
        "number of frames can resolve.",
    },
    "zh": {
        "latency_percentiles.title": "时延分布",
        "latency_percentiles.x": "不超过该时延的帧所占比例（每格：超过者减为十分之一）",
        "latency_percentiles.y": "时延（对数坐标）",
        "latency_percentiles.case": "{dut}，{frame}帧",
        "latency_percentiles.share": "{load}% 负载",
        "latency_percentiles.rate": "{load} Mpps",
        "latency_percentiles.note": "每条线的末点为最大值，画在该帧数所能分辨的比例处。",
    },
}
HIGHEST_NS, LOWEST_NS = 1e18, 1e-3
TICKS = ("0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %")
LAST = 5.6  # the right end: a little beyond 99.999 %
N_LINES = 24


def rarity(share: float) -> float:
    """The x value of a share, in decades: 0 for all frames, 1 for 90 %, 2 for 99 %."""
    return -math.log10(1 - share)


def dots(point: LoadPoint, name: str) -> list[Dot]:
    """The statistics of one load, from the lowest to the highest."""
    values, link = dict(point.values), f"#{anchor_of(point.line)}" if point.line else None
    most = math.log10(point.n_frames) if point.n_frames > 1 else 0.0  # the slowest frame is 1 of so many
    places = [(rarity(share), key) for key, share in SHARES.items() if rarity(share) < most or key == "min"]
    places.append((min(max(most, 0.05), LAST), "max"))
    return [
        Dot(x, values[key], f"{name}, {key.replace('_', '.')}: {micros(values[key])} µs", link)
        for x, key in places
        if LOWEST_NS <= values[key] < HIGHEST_NS
    ]


def load_name(case: LatencyCase, point: LoadPoint, words: Words) -> str:
    """The name of a load."""
    return words("latency_percentiles.share" if case.is_share else "latency_percentiles.rate", load=f"{point.x:.3g}")


def upright(all_cases: Sequence[LatencyCase], words: Words) -> Axis | None:
    """The axis of all such charts of the page."""
    points = [point for case in all_cases for point in case.points[:N_LINES]]
    values = [dot.y for point in points for dot in dots(point, "")]
    return log_axis(words("latency_percentiles.y"), min(values), max(values), duration) if values else None


def draw_case(case: LatencyCase, name: str, loads: list[str], y_axis: Axis | None, words: Words) -> Element | None:
    """The small chart of one series and frame size."""
    lines = []
    for point in case.points[:N_LINES]:
        load = load_name(case, point, words)
        lines.append(Line(load, load, dots(point, load), loads.index(load)))
    if y_axis is None:
        return None
    x_axis = Axis(words("latency_percentiles.x"), [*((float(n), text) for n, text in enumerate(TICKS)), (LAST, "")])
    return draw_lines(LineChart(name, x_axis, y_axis, lines))


def draw_percentiles(scene: Scene, words: Words) -> Drawing | None:
    """All of them."""
    cases = latency_cases(scene.part.results)
    names = names_of((case.series for case in cases), words)
    points = [(case, point) for case in cases for point in case.points[:N_LINES]]
    loads = list(dict.fromkeys(load_name(case, point, words) for case, point in points))
    pictures, y_axis = [], upright(latency_cases(scene.groups.results), words)
    for case in cases:
        name = words("latency_percentiles.case", dut=names[case.series], frame=words.frame(case.frame))
        drawn = draw_case(case, name, loads, y_axis, words)
        pictures += [drawn] if drawn is not None else []
    keys = [entry_of(n, load) for n, load in enumerate(loads)]
    title, note = words("latency_percentiles.title"), words("latency_percentiles.note")
    return Drawing(title, pictures, note, keys) if pictures else None


CHART = Chart("latency_percentiles", 45, WORDS, draw_percentiles, topic="latency")
