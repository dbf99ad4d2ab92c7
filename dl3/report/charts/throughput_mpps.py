"""Throughput over frame size in million frames per second."""

from dl3.report.by_frame import Measure, draw
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.words import Words

WORDS = {
    "en": {
        "throughput_mpps.title": "Throughput over frame size, million frames per second",
        "throughput_mpps.note": "The thin line at a bar is the range of the result: its 95 % interval, or up to the "
        "lowest rate known to be too high. ≥: the device was not the limit. A dotted line across a bar is the "
        "conditional throughput, that is, the rate received.",
    },
    "zh": {
        "throughput_mpps.title": "各帧长下的吞吐量（Mpps）",
        "throughput_mpps.note": "柱上细线为结果所在范围：95% 置信区间，或到已知无法达到的最低速率；"
        "标有“≥”表示瓶颈不在被测设备；"
        "横穿柱体的虚线为条件吞吐量，即实际收到的速率。",
    },
}


def draw_mpps(scene: Scene, words: Words) -> Drawing | None:
    """Bars in Mpps; the line rate, which depends on the frame size, is shown in the other charts."""
    measure = Measure(
        title=words("throughput_mpps.title"),
        note=words("throughput_mpps.note"),
        y_name="Mpps",
        of=lambda _, pps: pps / 1e6,
        unit="Mpps",
        shows_line=False,
    )
    return None if has_published(scene) else draw(scene, words, measure)


def has_published(scene: Scene) -> bool:
    """Whether another chart draws the same bars next to published ones."""
    return bool(scene.part.case and scene.part.case.published)


CHART = Chart("throughput_mpps", 10, WORDS, draw_mpps)
