"""Time out of service: each kind of reset is a series."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.reset import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def distinguishes_resets_of_the_process_from_those_of_the_port() -> None:
    drawing = CHART.draw(scene(others(Maker(), "64")), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [(bar["data-series"], round(float(bar["data-value"]), 3)) for bar in bars] == [
        ("dl3d, process reset", 635.0),
        ("dl3d, port reset", 13.0),
    ]


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
