"""Bars as high as the results of the searches."""

from harness.records import Maker, scene

from dl3.report.charts.throughput_mpps import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def draws_a_bar_for_each_result_in_the_order_of_sizes() -> None:
    maker = Maker()
    drawing = CHART.draw(scene([maker.result("imix", 3e6), maker.result("1518", 1e6), maker.result("64", 9e6)]), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [(bar["data-frame"], bar["data-value"]) for bar in bars] == [("64", "9.0"), ("1518", "1.0"), ("imix", "3.0")]


def marks_what_the_generator_limited() -> None:
    drawing = CHART.draw(scene([Maker().result("64", 9e6, limited_by="generator")]), EN)
    assert drawing
    assert "≥9.00" in [text.text for text in drawing.pictures[0].iter("text")]


def gives_each_device_a_colour_of_its_own() -> None:
    results = [Maker(dut=dut).result("64", 9e6) for dut in ("dl3d", "l3fwd")]
    drawing = CHART.draw(scene(results), EN)
    assert drawing
    bars = [rect.attrib for rect in drawing.pictures[0].iter("rect") if "data-value" in rect.attrib]
    assert [(bar["data-series"], bar["class"]) for bar in bars] == [("dl3d", "bar c0"), ("l3fwd", "bar c1")]


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
