"""Latency over load, on a logarithmic axis: a small chart for each frame size."""

from xml.etree.ElementTree import Element

from dl3.report.chart import Chart, Drawing
from dl3.report.lines import Line, LineChart, draw_lines
from dl3.report.names import campaign_text
from dl3.report.results import QUANTILES, LatencyCase, Results, latency_cases
from dl3.report.words import Words

WORDS = {
    "en": {
        "latency_load.title": "Latency over load",
        "latency_load.axis": "Latency, logarithmic",
        "latency_load.share": "Load, % of the throughput",
        "latency_load.rate": "Offered load, Mpps",
        "latency_load.case": "{dut}, {frame} frames",
        "latency_load.note": "From the time at which a frame was due to its arrival, so that a queue before the device "
        "counts. Medians over repeated trials.",
    },
    "zh": {
        "latency_load.title": "不同负载下的时延",
        "latency_load.axis": "时延（对数坐标）",
        "latency_load.share": "负载（占吞吐量的 %）",
        "latency_load.rate": "发送速率（Mpps）",
        "latency_load.case": "{dut}，{frame}帧",
        "latency_load.note": "时延从帧应当发出的时刻算起，到收到为止，因此计入设备入口处的排队；重复测试取中位数。",
    },
}
HIGHEST_NS = 1e18
LOWEST_NS = 1e-3


def lines_of(case: LatencyCase, words: Words) -> list[Line]:
    """A line for each figure of the distribution."""
    points = [(point.x, dict(point.values)) for point in case.points if 0 <= point.x < HIGHEST_NS]
    return [
        Line(name, words(f"quantile.{name}"), [(x, of[name]) for x, of in points if LOWEST_NS <= of[name] < HIGHEST_NS])
        for name in QUANTILES
    ]


def draw_case(case: LatencyCase, words: Words, has_times: bool) -> Element | None:
    """The small chart of one device and frame size."""
    name = words("latency_load.case", dut=case.dut, frame=words.frame(case.frame))
    x_name = words("latency_load.share" if case.is_share else "latency_load.rate")
    label = f"{name}, {campaign_text(case.campaign, words)}" if has_times else name
    return draw_lines(LineChart(label, x_name, words("latency_load.axis"), lines_of(case, words)))


def draw_latency(results: Results, words: Words) -> Drawing | None:
    """All of them."""
    cases = latency_cases(results)
    has_times = len({case.campaign for case in cases}) > 1
    pictures = [picture for case in cases if (picture := draw_case(case, words, has_times)) is not None]
    return Drawing(words("latency_load.title"), pictures, words("latency_load.note")) if pictures else None


CHART = Chart("latency_load", 40, WORDS, draw_latency)
