"""Forwarding rate over the intended load (RFC 2889, 5.1 and 5.2)."""

from dl3.model.results import Forwarding, LossPoint
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.over_load import View, draw
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "forwarding.title": "Forwarding rate over offered load",
        "forwarding.axis": "Forwarded, Mpps",
        "forwarding.note": "The rate forwarded, regardless of loss. It shows at once whether a device forwards less "
        "when more is offered.",
    },
    "zh": {
        "forwarding.title": "不同发送速率下的转发速率",
        "forwarding.axis": "转发速率（Mpps）",
        "forwarding.note": "不论是否丢包的实际转发速率；若负载升高时转发速率反而下降，可从图中直接看出。",
    },
}


def results_of(results: Results) -> list[Forwarding]:
    """The results of this test."""
    return [result for result in results.others if isinstance(result, Forwarding)]


def place(at: LossPoint) -> tuple[float, float]:
    """The x value of a load."""
    return at.pps / 1e6, at.pps * max(1 - at.loss_ratio, 0) / 1e6


def draw_forwarding(scene: Scene, words: Words) -> Drawing | None:
    """A line for each frame size."""
    view = View("forwarding", words("forwarding.axis"), place, results_of, top=0.0)
    return draw(scene, words, view)


CHART = Chart("forwarding", 100, WORDS, draw_forwarding, topic="forwarding")
