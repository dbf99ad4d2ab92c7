"""Frame loss over the offered load (RFC 2544, 26.3)."""

from dl3.model.results import FrameLoss, LossPoint
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.over_load import View, draw
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "frame_loss.title": "Frame loss over offered load",
        "frame_loss.axis": "Lost, %",
        "frame_loss.note": "From the highest rate that the line or the generator can send, in descending steps, until "
        "two consecutive loads had no loss or the last step was reached; then the rates that the campaign names. Loads "
        "without a valid trial have no dot.",
    },
    "zh": {
        "frame_loss.title": "不同发送速率下的丢包率",
        "frame_loss.axis": "丢包率（%）",
        "frame_loss.note": "从线路或发生器所能发送的最高速率起逐级降低，直到连续两级没有丢包或已到最低一级。"
        "此外还有测试计划指定的速率。没有有效试验的负载不标点。",
    },
}


def results_of(results: Results) -> list[FrameLoss]:
    """The results of this test."""
    return [result for result in results.others if isinstance(result, FrameLoss)]


def place(at: LossPoint) -> tuple[float, float]:
    """The x value of a load."""
    return at.pps / 1e6, at.loss_ratio * 100


def draw_loss(scene: Scene, words: Words) -> Drawing | None:
    """A line for each frame size."""
    view = View("frame_loss", words("frame_loss.axis"), place, results_of, top=1.0)
    return draw(scene, words, view)


CHART = Chart("frame_loss", 60, WORDS, draw_loss, topic="frame_loss")
