"""Campaign files, checked against everything that the program supports."""

import re
from pathlib import Path

import pytest

from dl3.campaign.shipped import shipped
from dl3.campaign.written import WrittenCampaign, WrittenCase, WrittenDut
from dl3.cli.campaign_file import published, read_campaign
from dl3.dut.beds import abilities
from dl3.model.fault import UsageFault

GUIDES = Path(__file__).parent.parent.parent / "docs" / "guide"
FIELDS = {  # of a setup, by their names in campaigns
    "huge pages": "memory_mib",
    "page size": "page_kib",
    "cores": "cores",
    "channels": "channels",
    "routes": "routes",
    "burst": "burst",
    "descriptors": "descriptors",
}
FILE = """name: mine
title: Mine
duts:
  - {name: box, DUT}
cases:
  - key: a
    title: A
    frames: 64
    tests: throughput
    CASE
"""
WIRED = "'mode' of the kind 'dl3d': found 'fast', expected one of route, xconnect, bridge"
GIVEN = "cannot be given it: leave it out, or write 'without: "


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.stem)
def recognises_all_names_in_the_files_of_the_program(path: Path) -> None:
    assert read_campaign(path.stem).written.name == path.stem


@pytest.mark.parametrize(
    ("dut", "case", "wanted"),
    [
        (
            "kind: testpmd, options: {mode: fast}",
            "",
            "4: 'mode' of the kind 'testpmd': found 'fast', expected one of io, mac, ",
        ),
        (
            "kind: testpmd, options: {wire: rope}",
            "",
            "4: 'wire' of the kind 'testpmd': found 'rope', expected one of memif, ",
        ),
        ("kind: dl3d, options: {mode: fast}", "", f"4: {WIRED}"),
        (
            "kind: external, options: {wire: veth}",
            "",
            "4: the option 'wire' of the kind 'external' is unknown: expected one of ge",
        ),
        (
            "kind: external, options: {streams: /nowhere/x.yaml}",
            "",
            "4: 'streams' of the kind 'external': /nowhere/x.yaml cannot be read: No such file",
        ),
        (
            "kind: external, options: {at: box.example}",
            "",
            "4: 'at' of the kind 'external': box.example: the other machine must be given as ssh://admin@192.0.2.7 or ",
        ),
        ("kind: external", "parameters: {direction: unidirectional}", f"{GIVEN}[direction]' at that device"),
        ("kind: dl3d", "streams: [{from: [a]}]", "10: 'from' of a stream: Input should be a valid string"),
        (
            "kind: linux",
            "parameters: {huge pages: 1 GiB}",
            "10: 'huge pages': found '1 GiB', but 'box', a device of",
        ),
        ("kind: testpmd", "parameters: {routes: 1m}", f"{GIVEN}[routes]' at that device"),
        ("kind: l3fwd", "parameters: {lcores: '1,1,2'}", f"{GIVEN}[lcores]' at that device"),
        ("kind: external", "parameters: {descriptors: 16384}", f"{GIVEN}[descriptors]' at that device"),
        (
            "kind: dl3d",
            "published: white-paper 9.9",
            "10: 'published': found 'white-paper 9.9', expected one of white-paper, ",
        ),
        (
            "kind: dl3d",
            "published: foo",
            "found 'foo', expected one of notes, thesis, vrouter, white-paper",
        ),
    ],
)
def refuses_what_no_device_of_that_kind_could_run(dut: str, case: str, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(FILE.replace("DUT", dut).replace("CASE", case))
    with pytest.raises(UsageFault) as caught:
        read_campaign(str(path))
    assert wanted in str(caught.value)
    assert str(caught.value).startswith(f"{path}, line ")


@pytest.mark.parametrize(
    ("dut", "line", "wanted"),
    [
        ("kind: testpmd", "tests: reset", "over memif, cannot be reset: give it 'options: {wire: veth}', or leave "),
        ("kind: external", "tests: reset", "cannot be reset from here: leave the test out, or use 'dl3 bench reset'"),
        ("kind: ovs", "frames: 1519", "carry frames of up to 1518 bytes: leave it out, or measure the device between"),
        ("kind: dl3d", "frames: 9018", "carry frames of up to 1518 bytes: leave it out, or measure the device between"),
        (
            "kind: dl3d, options: {mode: vxlan}",
            "frames: 1469",
            "with 'mode: vxlan' takes sizes of up to 1468 bytes, and no",
        ),
        (
            "kind: linux, options: {mode: vxlan}",
            "frames: imix",
            "with 'mode: vxlan' takes sizes of up to 1468 bytes, and no",
        ),
        ("kind: ovs", "tests: reset", ""),
        ("kind: dl3d, options: {wire: veth}", "tests: reset", ""),
        ("kind: external", "frames: 9618", ""),
    ],
)
def refuses_what_a_device_cannot_be_put_to(dut: str, line: str, wanted: str, tmp_path: Path) -> None:
    path, key = tmp_path / "c.yaml", line.partition(":")[0]
    path.write_text(re.sub(f"{key}: .*", line, FILE.replace("DUT", dut).replace("    CASE\n", "")))
    if not wanted:
        assert read_campaign(str(path)).written.name == "mine"
        return
    with pytest.raises(UsageFault) as caught:
        read_campaign(str(path))
    assert wanted in str(caught.value)
    assert f"{path}, line {8 if key == 'frames' else 9}: " in str(caught.value)


@pytest.mark.parametrize("guide", ["campaign.md", "campaign.zh.md"])
def finds_all_keys_in_the_guide(guide: str) -> None:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for kind, ability in abilities().items():
        words = [*ability.choices, *(value for values in ability.choices.values() for value in values)]
        assert all(f"`{word}`" in rows[kind] for word in words)
        reported = rows[kind].split("|")[3]
        cannot = {name for name, field in FIELDS.items() if field not in ability.honours}
        assert kind == "external" or cannot == {name for name in FIELDS if re.search(rf"(^|[ 、；]){name}", reported)}
    keys = (model.model_fields for model in (WrittenCampaign, WrittenDut, WrittenCase))
    assert all(f"`{key}`" in text for fields in keys for key in fields)
    assert all(f"`{source}`" in text for source in published() if " " not in source)


def names_published_cases_as_campaigns_do() -> None:
    assert {"white-paper 1.1", "thesis 4.8", "white-paper", "notes", "notes kernel L3", "vrouter 6.1"} <= published()
    assert not {"white-paper 2.5", "kvm-report"} & published()  # nothing that could be drawn
