"""Recovery time in milliseconds."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.recovery import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_the_mean_in_milliseconds() -> None:
    drawing = CHART.draw(scene(others(Maker(), "64")), EN)
    assert drawing
    (bar,) = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert round(float(bar["data-value"]), 6) == 2.5


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
