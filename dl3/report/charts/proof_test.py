"""The tester beside its results."""

from harness.campaigns import proof
from harness.records import Maker, scene

from dl3.report.charts.proof import CHART
from dl3.report.results import Record
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_the_ceiling_beside_the_highest_result() -> None:
    records: list[Record] = [proof(Maker(), ["64"]), Maker().answer("64", 9e6), Maker(dut="l3fwd").answer("64", 8e6)]
    drawing = CHART.draw(scene(records), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [float(bar["data-value"]) for bar in bars] == [24.0, 9.0]


def draws_nothing_without_an_answer() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
