"""A lab on the page: the report's own numbers, and the drawing and the table of each load."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from dl3.lab.kind import Settings
from dl3.lab.kvm_report import topology_of
from dl3.model.lab import Hop, LabRun
from dl3.record.reader import parse
from dl3.report.lab_drawing import drawing
from dl3.report.lab_story import segments
from dl3.report.page import page
from dl3.report.texts import words_in
from dl3.report.words import Language

TOPOLOGY = topology_of(Settings(), "tcg")
HOPS = (
    Hop(place="VM1 tx", came=1000, went=990, named={"refused": 10}),
    Hop(place="vnet0", came=990, went=990),
    Hop(place="br0", came=990, went=989),
    Hop(place="vnet1", came=989, went=700, named={"tx_dropped": 289}),
    Hop(place="VM2 rx", came=700, went=698, named={"imissed": 2}),
    Hop(place="VM2", came=698, went=600, named={"dropped": 98}),
    Hop(place="vnet2", came=600, went=600),
    Hop(place="br1", came=600, went=600),
    Hop(place="vnet3", came=600, went=555, named={"tx_dropped": 45}),
    Hop(place="VM1 rx", came=555, went=554, named={"imissed": 1}),
)
RUN = LabRun(
    at="2026-11-28T10:00:00+00:00",
    campaign="2026-11-28T09:59:00+00:00",
    topology=TOPOLOGY,
    frame="64",
    asked_pps=500,
    seconds=2,
    hops=HOPS,
    facts={},
)


def has_the_right_numbers_of_the_report() -> None:
    found = {one.key: f"{one.ratio:.2%}" for one in segments()}
    assert found == {"there": "16.29%", "inside": "3.42%", "back": "38.32%", "whole": "50.13%"}


def _texts(element: Element) -> Iterator[str]:
    yield from (text.strip() for text in element.itertext() if text.strip())


@pytest.mark.parametrize("language", Language)
def draws_what_was_built(language: Language) -> None:
    picture = drawing(RUN, words_in(language))
    texts = list(_texts(picture))
    ports = [port for ports in TOPOLOGY.nodes.values() for port in ports]
    names = [vm.name for vm in TOPOLOGY.stations] + ports + ["br0", "br1", "dl3gen", "l2fwd"]
    assert [name for name in names if texts.count(name) != 1] == []
    lost = {
        text.get("data-place"): float(text.get("data-value") or 0)
        for text in picture.iter("text")
        if text.get("data-place")
    }
    assert lost == {hop.place: hop.lost for hop in HOPS if hop.lost}
    rates = [
        float(text.get("data-value") or 0)
        for text in picture.iter("text")
        if text.get("class") == "value" and text.get("data-value")
    ]
    assert sorted(rates, reverse=True) == [990, 700, 600, 555]


@pytest.mark.parametrize("language", Language)
def stays_inside_the_picture(language: Language) -> None:
    picture = drawing(RUN, words_in(language))
    _, _, width, height = (float(n) for n in picture.get("viewBox", "").split())
    for one in picture.iter():
        x, y = float(one.get("x", 0)), float(one.get("y", 0))
        assert 0 <= x <= x + float(one.get("width", 0)) <= width, one.attrib
        assert 0 <= y <= y + float(one.get("height", 0)) <= height, one.attrib


@pytest.mark.parametrize("language", Language)
def shows_a_lab_on_the_page(language: Language) -> None:
    words = words_in(language)
    text = page([RUN], language, "2026-11-28T10:00:00+00:00")
    assert all(number in text for number in ("16.29", "3.42", "38.32", "50.13", "1.49"))
    assert 'id="hops-1"' in text
    assert "289" in text
    assert words("lab.unnamed", n="1") in text  # of br0
    assert words("lab.emulated") in text
    assert words("result.empty") not in text
    assert 'id="section-method"' not in text


def is_a_record_like_every_other() -> None:
    record = parse(Path("x"), RUN.model_dump_json().encode() + b"\n")
    assert record.left_out == ()
    assert record.lines == ((1, RUN),)
    broken = RUN.model_copy(update={"hops": ()})
    assert parse(Path("x"), broken.model_dump_json().encode() + b"\n").lines == ()
