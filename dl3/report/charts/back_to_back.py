"""The longest burst forwarded without loss (RFC 2544, 26.4, and RFC 9004)."""

from dataclasses import replace

from dl3.model.results import BackToBack
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.result_bars import Height, Quantity, draw, height_of
from dl3.report.results import Other
from dl3.report.words import Words

WORDS = {
    "en": {
        "back_to_back.title": "Longest burst without loss",
        "back_to_back.axis": "Frames",
        "back_to_back.note": "Mean of the repetitions; the thin line spans the shortest to the longest. ≥: the "
        "longest burst tried also passed.",
    },
    "zh": {
        "back_to_back.title": "不丢包的最长突发",
        "back_to_back.axis": "帧数",
        "back_to_back.note": "取各次重复的平均值；细线从最短到最长。“≥”表示所试的最长突发也没有丢包。",
    },
}


def burst_of(result: Other) -> Height | None:
    """Frames of the burst."""
    if not isinstance(result, BackToBack):
        return None
    found = height_of(result.bursts) or height_of([result.frames])
    return replace(found, is_at_least=result.is_at_least) if found else None


def draw_bursts(scene: Scene, words: Words) -> Drawing | None:
    """Bars in frames."""
    quantity = Quantity("back_to_back", words("back_to_back.axis"), "", burst_of)
    return draw(scene, words, scene.part.results.others, quantity)


CHART = Chart("back_to_back", 70, WORDS, draw_bursts, topic="back_to_back")
