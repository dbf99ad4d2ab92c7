"""Throughput over frame size in percent of the line rate; one sentence if the wire has none."""

from dl3.model.trial import Throughput
from dl3.report.by_frame import Measure, draw, line_pps
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.words import Words

WORDS = {
    "en": {
        "throughput_line_rate.title": "Throughput over frame size, percent of line rate",
        "throughput_line_rate.axis": "% of line rate",
        "throughput_line_rate.none": "This wire has no line rate, so no percentage is given.",
        "throughput_line_rate.note": "100 % is the sum of the line rates of all sending ports.",
    },
    "zh": {
        "throughput_line_rate.title": "各帧长下的吞吐量（占线速百分比）",
        "throughput_line_rate.axis": "占线速 %",
        "throughput_line_rate.none": "此链路没有线速，因此不给出百分比。",
        "throughput_line_rate.note": "100% 即所有发送端口的线速之和。",
    },
}


def share(search: Throughput, pps: float) -> float | None:
    """Percent of the line rate."""
    line = line_pps(search)
    return pps / line * 100 if line else None


def draw_line_rate(scene: Scene, words: Words) -> Drawing | None:
    """Bars in percent."""
    title = words("throughput_line_rate.title")
    measure = Measure(
        title=title,
        note=words("throughput_line_rate.note"),
        y_name=words("throughput_line_rate.axis"),
        of=share,
        unit="%",
        top=100.0,
    )
    found = draw(scene, words, measure)
    if found is None and scene.part.results.searches:
        return Drawing(title, [], words("throughput_line_rate.none"))
    return found


CHART = Chart("throughput_line_rate", 30, WORDS, draw_line_rate, is_for_cases=False)
