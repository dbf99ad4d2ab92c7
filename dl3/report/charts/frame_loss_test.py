"""Loss over load: a line for each frame size."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.frame_loss import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_loss_in_percent_over_the_offered_load() -> None:
    drawing = CHART.draw(scene(others(Maker(ceiling_pps=7e6), "64")), EN)
    assert drawing
    dots = [dot.attrib for dot in drawing.pictures[0].iter("circle") if "data-x" in dot.attrib]
    assert [float(dot["data-x"]) for dot in dots] == sorted(float(dot["data-x"]) for dot in dots)
    assert round(float(dots[-1]["data-value"]), 3) == 28.571
    assert float(dots[0]["data-value"]) == 0


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
