"""Measured bars next to published ones."""

from harness.campaigns import AT, white_paper

from dl3.report.chart import Drawing, Scene
from dl3.report.charts.published import CHART
from dl3.report.groups import Groups
from dl3.report.results import gather, parts
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)
RESULTS = gather(white_paper(campaign=AT))
GROUPS = Groups(RESULTS)


def _drawn(key: str) -> Drawing | None:
    part = next(part for part in parts(RESULTS) if part.case and part.case.key == key)
    return CHART.draw(Scene(part, GROUPS), EN)


def gives_the_same_value_the_same_colour() -> None:
    drawing = _drawn("1.1")
    assert drawing
    colours = [(entry.shape, entry.class_) for entry in drawing.keys]
    assert colours == [*(("bar", f"c{n}") for n in range(4)), *(("hollow", f"c{n}") for n in range(4))]


def draws_published_bars_alone_where_nothing_can_be_measured() -> None:
    drawing = _drawn("2.1")
    assert drawing
    assert {entry.shape for entry in drawing.keys} == {"hollow"}
    assert drawing.title == "Published; not measured here"


def reports_the_figure_as_it_was_published() -> None:
    drawing = _drawn("1.1")
    assert drawing
    tips = [text.text or "" for text in drawing.pictures[0].iter("text") if text.get("class") == "tip"]
    assert any("74.138 percent of 2x10 Gbit/s = 21.552 Mpps" in tip for tip in tips)
