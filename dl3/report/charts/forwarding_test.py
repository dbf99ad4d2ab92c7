"""Forwarding rate over load."""

from harness.campaigns import others
from harness.records import Maker, scene

from dl3.report.charts.forwarding import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_what_comes_out_of_what_goes_in() -> None:
    drawing = CHART.draw(scene(others(Maker(ceiling_pps=7e6), "64")), EN)
    assert drawing
    dots = [dot.attrib for dot in drawing.pictures[0].iter("circle") if "data-x" in dot.attrib]
    assert round(float(dots[-1]["data-x"]), 6) == 9.8
    assert round(float(dots[-1]["data-value"]), 6) == 7.0


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
