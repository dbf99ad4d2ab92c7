"""Throughput over frame size in Gbit/s at layer 1, including preamble and inter-frame gap."""

from dl3.model.trial import LAYER1_BYTES
from dl3.report.by_frame import Measure, draw
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.words import Words

WORDS = {
    "en": {
        "throughput_gbps.title": "Throughput over frame size, Gbit/s at layer 1",
        "throughput_gbps.note": "Layer 1 counts the frame with its FCS plus 20 bytes of preamble and inter-frame gap.",
    },
    "zh": {
        "throughput_gbps.title": "各帧长下的吞吐量（一层速率，Gbit/s）",
        "throughput_gbps.note": "一层速率按含 FCS 的帧长再加 20 字节（前导码与帧间隔）计算。",
    },
}


def draw_gbps(scene: Scene, words: Words) -> Drawing | None:
    """Bars in Gbit/s, with the line rate if the wire has one."""
    measure = Measure(
        title=words("throughput_gbps.title"),
        note=words("throughput_gbps.note"),
        y_name="Gbit/s",
        of=lambda search, pps: pps * (search.mean_bytes + LAYER1_BYTES) * 8 / 1e9,
        unit="Gbit/s",
    )
    return draw(scene, words, measure)


CHART = Chart("throughput_gbps", 20, WORDS, draw_gbps, is_for_cases=False)
