"""How long a device keeps losing frames after an overload (RFC 2544, 26.5)."""

from dl3.model.results import Recovery
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.result_bars import Height, Quantity, draw, height_of
from dl3.report.results import Other
from dl3.report.words import Words

WORDS = {
    "en": {
        "recovery.title": "Recovery from overload",
        "recovery.axis": "Milliseconds",
        "recovery.note": "From the moment the load dropped from 110 % to 50 % of the throughput until the last lost "
        "frame; mean of the repetitions, with minimum and maximum.",
    },
    "zh": {
        "recovery.title": "过载后的恢复时间",
        "recovery.axis": "毫秒",
        "recovery.note": "从负载由吞吐量的 110% 降到 50% 起，到最后一次丢包为止；取各次重复的平均值，"
        "并标出最小与最大值。",
    },
}


def time_of(result: Other) -> Height | None:
    """Milliseconds."""
    return height_of(result.seconds, 1e3) if isinstance(result, Recovery) else None


def draw_recovery(scene: Scene, words: Words) -> Drawing | None:
    """Bars in milliseconds."""
    quantity = Quantity("recovery", words("recovery.axis"), "ms", time_of)
    return draw(scene, words, scene.part.results.others, quantity)


CHART = Chart("recovery", 80, WORDS, draw_recovery, topic="recovery")
