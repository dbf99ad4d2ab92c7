"""The longest burst, with the range of its repetitions."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.back_to_back import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_the_mean_of_the_bursts_between_the_least_and_the_greatest() -> None:
    drawing = CHART.draw(scene(others(Maker(), "64")), EN)
    assert drawing
    (bar,) = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert float(bar["data-value"]) == sum((16_100, 16_384, 15_900)) / 3
    assert [line for line in drawing.pictures[0].iter("line") if line.get("class") == "whisker"]


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
