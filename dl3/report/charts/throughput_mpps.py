"""Throughput over frame size in million frames a second."""

from dl3.report.by_frame import Measure, draw
from dl3.report.chart import Chart, Drawing
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "throughput_mpps.title": "Throughput over frame size, million frames a second",
        "throughput_mpps.note": "The thin line above a bar ends at the lowest rate that is known to be too high. "
        "≥ stands where the device was not the limit.",
    },
    "zh": {
        "throughput_mpps.title": "各帧长下的吞吐量（Mpps）",
        "throughput_mpps.note": "柱顶细线的上端为已知无法达到的最低速率；标有“≥”表示瓶颈不在被测设备。",
    },
}


def draw_mpps(results: Results, words: Words) -> Drawing | None:
    """Bars in Mpps, the line rate, which differs from size to size, stands in the other charts."""
    title = words("throughput_mpps.title")
    picture = draw(results, words, Measure(title, "Mpps", lambda _, pps: pps / 1e6, shows_line=False))
    return Drawing(title, [picture], words("throughput_mpps.note")) if picture is not None else None


CHART = Chart("throughput_mpps", 10, WORDS, draw_mpps)
