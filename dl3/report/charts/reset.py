"""How long a device does not forward after a reset (RFC 2544, 26.6)."""

from dl3.model.results import Reset
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.result_bars import Height, Quantity, draw, height_of
from dl3.report.results import Other
from dl3.report.words import Words

WORDS = {
    "en": {
        "reset.title": "Time out of service after a reset",
        "reset.axis": "Milliseconds",
        "reset.process": "process reset",
        "reset.port": "port reset",
        "reset.note": "From the last frame before the reset to the first frame after it; mean of the repetitions, "
        "with minimum and maximum.",
    },
    "zh": {
        "reset.title": "复位后的中断时间",
        "reset.axis": "毫秒",
        "reset.process": "进程复位",
        "reset.port": "端口复位",
        "reset.note": "从复位前最后一帧到复位后第一帧；取各次重复的平均值，并标出最小与最大值。",
    },
}


def time_of(result: Other) -> Height | None:
    """Milliseconds."""
    return height_of(result.seconds, 1e3) if isinstance(result, Reset) else None


def kind(result: Other, words: Words) -> str:
    """What was reset."""
    return words(f"reset.{result.what}") if isinstance(result, Reset) else ""


def draw_reset(scene: Scene, words: Words) -> Drawing | None:
    """Bars in milliseconds."""
    quantity = Quantity("reset", words("reset.axis"), "ms", time_of, kind)
    return draw(scene, words, scene.part.results.others, quantity)


CHART = Chart("reset", 90, WORDS, draw_reset, topic="reset")
