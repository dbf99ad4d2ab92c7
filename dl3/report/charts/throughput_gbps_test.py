"""Preamble and gap are counted, and the line rate is drawn if bars come close to it."""

import pytest
from harness.records import Maker, scene

from dl3.report.charts.throughput_gbps import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def counts_preamble_and_gap() -> None:
    drawing = CHART.draw(scene([Maker().result("64", 1e6)]), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [float(bar["data-value"]) for bar in bars] == [pytest.approx(0.672)]


@pytest.mark.parametrize(("line_bps", "is_drawn"), [(0, False), (1e9, True), (100e9, False)])
def draws_the_line_rate_unless_it_is_far_above(line_bps: float, is_drawn: bool) -> None:
    drawing = CHART.draw(scene([Maker(line_bps=line_bps).result("64", 1e6)]), EN)
    assert drawing
    assert any(line.get("class") == "limit" for line in drawing.pictures[0].iter("line")) == is_drawn
