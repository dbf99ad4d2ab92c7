"""The generator's ceiling next to the results."""

from xml.etree.ElementTree import Element

from harness.campaigns import proof
from harness.records import Maker, scene

from dl3.report.charts.proof import CHART
from dl3.report.results import Record
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def _bars(picture: Element) -> list[dict[str, str]]:
    return [rect.attrib for rect in picture.iter("rect") if "data-value" in rect.attrib]


def draws_the_ceiling_beside_the_highest_result() -> None:
    records: list[Record] = [proof(Maker(), ["64"]), Maker().result("64", 9e6), Maker(dut="l3fwd").result("64", 8e6)]
    drawing = CHART.draw(scene(records), EN)
    assert drawing
    assert [float(bar["data-value"]) for bar in _bars(drawing.pictures[0])] == [24.0, 9.0]


def draws_the_wires_apart_and_reports_at_least_where_a_proof_fell_short() -> None:
    memif, veth = (Maker(facts=(("lab", {"wire": wire}),)) for wire in ("memif", "veth"))
    over_veth = proof(veth, ["64"]).model_copy(update={"wire": "veth"})
    drawing = CHART.draw(scene([proof(memif, ["64"]), over_veth, memif.result("64", 30e6), veth.result("64", 1e6)]), EN)
    assert drawing
    assert [shown.get("aria-label") for shown in drawing.pictures] == ["memif", "veth"]
    bars = [[(b["data-bound"], float(b["data-value"])) for b in _bars(shown)] for shown in drawing.pictures]
    assert bars == [[("≥", 24.0), ("=", 30.0)], [("=", 24.0), ("=", 1.0)]]


def draws_nothing_without_a_result() -> None:
    assert CHART.draw(scene([Maker().trial("64", 1e6)]), EN) is None
