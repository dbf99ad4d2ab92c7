"""Percent of the line rate, or one sentence."""

import pytest
from harness.records import Maker, scene

from dl3.report.charts.throughput_line_rate import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_percent_of_the_line_rate() -> None:
    drawing = CHART.draw(scene([Maker(line_bps=10e9).result("64", 7.44e6)]), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [float(bar["data-value"]) for bar in bars] == [pytest.approx(50, abs=0.01)]


def reports_that_the_wire_has_no_line_rate() -> None:
    drawing = CHART.draw(scene([Maker(line_bps=0).result("64", 1e6)]), EN)
    assert drawing
    assert not drawing.pictures
    assert drawing.note.startswith("This wire has no line rate")
