"""The published figures of a case and what is shown with them."""

from xml.etree.ElementTree import Element

import pytest
from harness.campaigns import LAB, found_flows, white_paper
from harness.records import Maker

from dl3.model.campaign import Plan
from dl3.model.trial import Throughput, Trial
from dl3.report.case_section import beside_section, flow_hits, ports_here
from dl3.report.chart import Scene
from dl3.report.groups import Groups
from dl3.report.results import gather, parts
from dl3.report.texts import words_in
from dl3.report.words import Language, Words

WORDS = words_in(Language.EN)
CASE = "1.1"


def _cells(limited_by: str = "dut", words: Words = WORDS) -> dict[str, list[str]]:
    """The texts of both tables' columns, by their keys."""
    records = [
        one.model_copy(update={"limited_by": limited_by}) if isinstance(one, Throughput) else one
        for one in white_paper()
    ]
    results = gather(records)
    part = next(one for one in parts(results) if one.case and one.case.key == CASE)
    found: dict[str, list[str]] = {}
    for piece in beside_section(Scene(part, Groups(results)), words):
        for cell in piece.iter("td"):
            found.setdefault(cell.attrib["data-col"], []).append(_text(cell))
    return found


def _text(element: Element) -> str:
    return "".join(element.itertext())


def reports_over_what_and_with_what_it_was_measured_here() -> None:
    here = dict(zip(_cells()["what"], _cells()["here"], strict=True))
    assert here["Scenario"] == "Physical: amount of huge pages"
    assert here["Ports"] == "memif"
    assert here["Conditions"] == "cores 1; huge pages 1 GiB, 2 GiB, 4 GiB, 6 GiB; flows 20,000; direction bidirectional"


@pytest.mark.parametrize(
    ("missed", "wanted"), [(0, "All 5,000,000 packets that dl3d-flow received"), (7, "7 of 5,000,000 ")]
)
def tells_packets_without_a_flow(missed: int, wanted: str) -> None:
    records = white_paper()
    case = next(case for record in records if isinstance(record, Plan) for case in record.cases if case.key == "1.8")
    trial = Maker().trial("66", 1e6, job=case.jobs[0].key, **found_flows(case.jobs[0], 1e6, missed))
    results = gather([*(one for one in records if not isinstance(one, Trial)), trial])
    (element,) = flow_hits(case, results, WORDS)
    assert _text(element).startswith(wanted)
    assert element.attrib["class"] == ("remark" if missed else "note")
    assert not flow_hits(case, gather(records[:1]), WORDS)


def quotes_in_the_language_of_the_page() -> None:
    cells = _cells(words=words_in(Language.ZH))
    assert cells["here"][-2].endswith("流数 20,000；方向 双向")
    assert "中国电信 DPDK 白皮书 V1.2（2016-01）" in cells["as_published"]
    assert set(cells["note"]) == {"1 个转发核"}


def names_the_cards_where_frames_went_over_them() -> None:
    cards: dict[str, object] = {"network_devices": ["0000:5e:00.0 0x8086:0x1572 i40e"]}
    assert ports_here({**cards, **LAB}, WORDS) == "memif"
    assert "i40e" in ports_here({**cards, "lab": {"wire": "ports of the file"}}, WORDS)
    assert "i40e" in ports_here(cards, WORDS)
    assert ports_here({}, WORDS) == "no network card"


def carries_at_least_to_the_published_table() -> None:
    measured = [cell for cell in _cells("generator")["mpps"] if cell != "–"]
    assert measured
    assert all(cell.startswith("≥ ") for cell in measured)
    assert not any(cell.startswith("≥ ") for cell in _cells()["mpps"])
