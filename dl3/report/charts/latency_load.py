"""Latency over load, on a logarithmic axis: a small chart for each frame size."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.groups import anchor_of
from dl3.report.latencies import QUANTILES, LatencyCase, latency_cases
from dl3.report.lines import Dot, Line, LineChart, draw_lines, entry_of
from dl3.report.names import names_of
from dl3.report.scale import Axis, linear_axis, log_axis
from dl3.report.units import duration, micros
from dl3.report.words import Words

WORDS = {
    "en": {
        "latency_load.title": "Latency over offered load",
        "latency_load.axis": "Latency, logarithmic",
        "latency_load.share": "Load, % of the throughput",
        "latency_load.rate": "Offered load, Mpps",
        "latency_load.case": "{dut}, {frame} frames",
        "latency_load.note": "From the time at which a frame was due to its arrival, so queueing in front of the "
        "device is included. Medians over repeated trials.",
    },
    "zh": {
        "latency_load.title": "不同负载下的时延",
        "latency_load.axis": "时延（对数坐标）",
        "latency_load.share": "负载（占吞吐量的 %）",
        "latency_load.rate": "发送速率（Mpps）",
        "latency_load.case": "{dut}，{frame}帧",
        "latency_load.note": "时延从帧应当发出的时刻算起，到收到为止，因此计入设备入口处的排队；重复试验取中位数。",
    },
}
HIGHEST_NS = 1e18
LOWEST_NS = 1e-3


def dot(x: float, value: float, name: str, line: str) -> Dot:
    """A point with its tooltip."""
    return Dot(x, value, f"{name}, {x:.3g}: {micros(value)} µs", f"#{anchor_of(line)}" if line else None)


def lines_of(case: LatencyCase, words: Words) -> list[Line]:
    """A line for each statistic of the distribution."""
    points = [(point, dict(point.values)) for point in case.points if 0 <= point.x < HIGHEST_NS]
    found = []
    for index, key in enumerate(QUANTILES):
        name = words(f"quantile.{key}")
        drawn = [(point, of[key]) for point, of in points if LOWEST_NS <= of[key] < HIGHEST_NS]
        found.append(Line(key, name, [dot(point.x, value, name, point.line) for point, value in drawn], index))
    return found


def axes(all_cases: Sequence[LatencyCase], is_share: bool, words: Words) -> tuple[Axis, Axis] | None:
    """Those of all such charts of the page; loads in percent and in Mpps have each their own."""
    places = [
        (one.x, one.y, case.is_share) for case in all_cases for line in lines_of(case, words) for one in line.dots
    ]
    values = [y for _, y, _ in places]
    if not values:
        return None
    x_name = words("latency_load.share" if is_share else "latency_load.rate")
    x_axis = linear_axis(x_name, max((x for x, _, of_share in places if of_share == is_share), default=0.0))
    return x_axis, log_axis(words("latency_load.axis"), min(values), max(values), duration)


def draw_case(case: LatencyCase, name: str, among: Sequence[LatencyCase], words: Words) -> Element | None:
    """The small chart of one series and frame size."""
    found = axes(among, case.is_share, words)
    return draw_lines(LineChart(name, *found, lines_of(case, words))) if found else None


def draw_latency(scene: Scene, words: Words) -> Drawing | None:
    """All of them."""
    cases, among = latency_cases(scene.part.results), latency_cases(scene.groups.results)
    names = names_of((case.series for case in cases), words)
    pictures = []
    for case in cases:
        name = words("latency_load.case", dut=names[case.series], frame=words.frame(case.frame))
        drawn = draw_case(case, name, among, words)
        pictures += [drawn] if drawn is not None else []
    keys = [entry_of(index, words(f"quantile.{key}")) for index, key in enumerate(QUANTILES)]
    return Drawing(words("latency_load.title"), pictures, words("latency_load.note"), keys) if pictures else None


CHART = Chart("latency_load", 40, WORDS, draw_latency, topic="latency")
