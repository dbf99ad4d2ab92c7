"""The distribution of latency."""

from harness.campaigns import latencies
from harness.records import Maker, scene, spread

from dl3.report.charts.latency_percentiles import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def ends_a_line_with_its_maximum_where_so_many_frames_resolve_it() -> None:
    drawing = CHART.draw(scene(latencies(Maker(), "64", 1000.0)), EN)
    assert drawing
    assert [entry.name for entry in drawing.keys] == ["10 % load", "50 % load", "90 % load"]
    dots = [dot.attrib for dot in drawing.pictures[0].iter("circle") if dot.get("data-series") == "10 % load"]
    values = [float(dot["data-value"]) for dot in dots]
    assert values == sorted(values)
    assert round(values[-1] / values[1]) == 130


def draws_no_share_that_so_few_frames_cannot_resolve() -> None:
    made = Maker().trial("64", 1e6, test="latency", load=0.5, latency=spread(100, 1000.0).model_dump())
    drawing = CHART.draw(scene([made]), EN)
    assert drawing
    places = [float(dot.attrib["data-x"]) for dot in drawing.pictures[0].iter("circle") if "data-x" in dot.attrib]
    assert max(places) == 2.0


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
