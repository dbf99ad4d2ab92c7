"""The generator's own ceiling next to the results measured with it."""

from dataclasses import replace
from xml.etree.ElementTree import Element

from dl3.model.results import Proof, ProofPoint
from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars
from dl3.report.by_frame import plausible
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.plot import Entry
from dl3.report.proofs import best_result, is_short, points_of
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "proof.title": "Results compared with the generator's own limit",
        "proof.ceiling": "generator against itself",
        "proof.best": "highest measured result",
        "proof.note": "The generator sent to itself over the same kind of port. The closer a result is to its "
        "ceiling, the more it reflects the generator rather than the device.",
    },
    "zh": {
        "proof.title": "测试结果与发生器自身上限的距离",
        "proof.ceiling": "发生器自测上限",
        "proof.best": "所测最高结果",
        "proof.note": "发生器经同类端口自发自收。结果越接近其上限，越是反映发生器而非被测设备。",
    },
}


def bars_of(proof: Proof, point: ProofPoint, results: Results) -> list[Bar]:
    """The ceiling, and the highest result with the same frames over the same wire."""
    best = best_result(proof, point, results)
    values = [plausible(point.ceiling_pps / 1e6), plausible(best.pps / 1e6) if best else None]
    bars = [Bar(series, point.frame, value) for series, value in enumerate(values) if value is not None]
    return [replace(bar, is_at_least=bar.series == 0 and is_short(proof, point, results)) for bar in bars]


def series_in(words: Words) -> list[Entry]:
    """The generator's ceiling and the results measured with it."""
    return [bar_entry(n, words(key)) for n, key in enumerate(("proof.ceiling", "proof.best"))]


def bars_over(wire: str, results: Results) -> list[Bar]:
    """Of the last proof of each frame size over one wire."""
    points = {point.frame: (proof, point) for proof, point in points_of(results) if proof.wire == wire}
    return [bar for proof, point in points.values() for bar in bars_of(proof, point, results)]


def picture(wire: str, label: str, results: Results, words: Words, top: float) -> Element | None:
    """The last proof of each frame size over one wire."""
    bars = bars_over(wire, results)
    if not bars:
        return None
    points = dict.fromkeys(point.frame for proof, point in points_of(results) if proof.wire == wire)
    groups = [Group(frame, words.short_frame(frame)) for frame in points]
    return draw_bars(BarChart(label, words("axis.frame"), "Mpps", series_in(words), groups, bars, top=top, unit="Mpps"))


def draw_proof(scene: Scene, words: Words) -> Drawing | None:
    """A picture for each wire, with its name if there are several."""
    results, title = scene.part.results, words("proof.title")
    wires = list(dict.fromkeys(proof.wire for proof in results.proofs))
    labels = [words.name("wire", wire) for wire in wires] if len(wires) > 1 else [title]
    top = max((bar.value for wire in wires for bar in bars_over(wire, results)), default=0.0)  # one axis for all wires
    drawn = [picture(*one, results, words, top) for one in zip(wires, labels, strict=False)]
    found = [one for one in drawn if one is not None]
    return Drawing(title, found, words("proof.note"), series_in(words)) if found else None


CHART = Chart("proof", 120, WORDS, draw_proof, topic="proof", is_for_cases=False)
