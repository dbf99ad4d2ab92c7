"""Two devices side by side."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.versus import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_the_ratio_with_one_on_the_axis() -> None:
    drawing = CHART.draw(scene(others(Maker(), "64")), EN)
    assert drawing
    (dot,) = [dot.attrib for dot in drawing.pictures[0].iter("circle")]
    assert float(dot["data-value"]) == 1.075
    assert "1" in [text.text for text in drawing.pictures[0].iter("text") if text.get("class") == "tick"]


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
