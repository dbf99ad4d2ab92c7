"""The tester's own ceiling beside what was measured with it."""

from dl3.model.answers import ProofPoint
from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars
from dl3.report.by_frame import plausible
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.results import Results
from dl3.report.words import Words

WORDS = {
    "en": {
        "proof.title": "How far results are from the tester's own limit",
        "proof.ceiling": "the tester against itself",
        "proof.best": "highest result with it",
        "proof.note": "The generator sent to itself over the same kind of port. A result "
        "near its ceiling says more of "
        "the tester than of the device.",
    },
    "zh": {
        "proof.title": "测试结果与发生器自身上限的距离",
        "proof.ceiling": "发生器自测上限",
        "proof.best": "所测最高结果",
        "proof.note": "发生器经同类端口自发自收。结果越接近其上限，越是反映发生器而非被测设备。",
    },
}


def bars_of(point: ProofPoint, results: Results) -> list[Bar]:
    """The ceiling, and the highest answer with the same frames."""
    values = [plausible(point.ceiling_pps / 1e6)]
    rates = [search.pps / 1e6 for search in results.searches if search.frame == point.frame]
    values.append(plausible(max(rates)) if rates else None)
    return [Bar(series, point.frame, value) for series, value in enumerate(values) if value is not None]


def draw_proof(scene: Scene, words: Words) -> Drawing | None:
    """The figure of the last proof of each frame size."""
    results = scene.part.results
    points = {point.frame: point for proof in results.proofs for point in proof.points}
    bars = [bar for point in points.values() for bar in bars_of(point, results)]
    if not bars:
        return None
    series = [bar_entry(n, words(key)) for n, key in enumerate(("proof.ceiling", "proof.best"))]
    groups = [Group(frame, words.short_frame(frame)) for frame in points]
    title = words("proof.title")
    chart = BarChart(title, words("axis.frame"), "Mpps", series, groups, bars, unit="Mpps")
    return Drawing(title, [draw_bars(chart)], words("proof.note"), series)


CHART = Chart("proof", 120, WORDS, draw_proof, topic="proof", is_for_cases=False)
