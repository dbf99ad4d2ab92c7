"""Valid and invalid campaign files."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dl3.campaign.fake import VOCABULARY
from dl3.campaign.parameters import PARAMETERS
from dl3.campaign.reader import parsed, read
from dl3.campaign.shipped import path_of, read_named, shipped
from dl3.campaign.written import Shared, WrittenCampaign, WrittenCase
from dl3.model.fault import UsageFault

FILE = Path("c.yaml")
GUIDES = Path(__file__).parent.parent.parent / "docs" / "guide"
HEAD = """name: mine
title: My router
duts: dl3d
defaults:
  frames: [64, imix]
  tests: throughput
cases:
"""
CASE = "  - key: a\n    title: A\n"


def refused(text: str) -> str:
    """The error for a file."""
    with pytest.raises(UsageFault) as caught:
        parsed(FILE, text.encode(), VOCABULARY)
    return str(caught.value)


def reads_a_campaign_as_it_is_written() -> None:
    text = HEAD + CASE + "    parameters: {huge pages: [1 GiB, 2 GiB], flows: 2x20000}\n    effort: {seconds: 0.5}\n"
    campaign = parsed(FILE, text.encode(), VOCABULARY)
    assert campaign.source == text
    assert campaign.written.title.zh == "My router"
    (case,) = campaign.written.cases
    assert case.parameters == {"huge pages": ("1 GiB", "2 GiB"), "flows": ("2x20000",)}
    assert case.effort.said() == {"seconds": 0.5}
    assert campaign.written.defaults.frames == ("64", "imix")


@pytest.mark.parametrize("guide", ["campaign.md", "campaign.zh.md"])
def reads_the_campaign_of_the_guide(guide: str) -> None:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    written = "".join(line + "\n" for line in text.split("\n## ")[1].splitlines() if line.startswith("    "))
    campaign = parsed(FILE, dedent(written).encode(), VOCABULARY)
    assert [case.key for case in campaign.written.cases] == ["memory", "sockets"]
    assert all(f"{name}" in text for name in PARAMETERS)


def lets_a_device_go_without_what_it_cannot_be_given() -> None:
    duts = "[dl3d, {name: linux, without: huge pages}, {name: box, kind: external, without: flows}]"
    case = CASE + "    duts: [dl3d, linux]\n    parameters: {huge pages: 1 GiB, cores: 1, generator cores: 0}\n"
    other = "  - {key: b, title: B, parameters: {burst: 64, flows: 9, NUMA placement: one, server: this machine}}\n"
    text = HEAD.replace("dl3d", duts) + case + other
    assert len(parsed(FILE, text.encode(), VOCABULARY).written.cases) == 2


def lets_a_device_be_put_to_what_its_wire_allows() -> None:
    duts = "[{name: dl3d, options: {wire: veth}}, linux, {name: box, kind: external}]"
    reset = "  - {key: a, title: A, duts: [dl3d, linux], tests: reset}\n"
    long = "  - {key: b, title: B, duts: box, frames: [64, 9018]}\n"
    tagged = "  - {key: c, title: C, duts: dl3d, frames: 1522, streams: [{from: left, to: right, vlan: 7}]}\n"
    text = HEAD.replace("dl3d", duts) + reset + long + tagged
    assert len(parsed(FILE, text.encode(), VOCABULARY).written.cases) == 3


def keeps_a_key_that_looks_like_a_number() -> None:
    text = HEAD + "  - {key: 1.10, title: A}\n  - {key: 1.1, title: {en: B, zh: C}}\n"
    assert [case.key for case in parsed(FILE, text.encode(), VOCABULARY).written.cases] == ["1.10", "1.1"]


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.stem)
def reads_each_campaign_that_comes_with_the_program(path: Path) -> None:
    campaign = read_named(path.stem, VOCABULARY)
    assert campaign.written.name == path.stem
    assert all(case.title.zh != case.title.en for case in campaign.written.cases)


def has_all_cases_of_the_white_paper() -> None:
    keys = [f"1.{i}" for i in range(1, 9)] + [f"2.{i}" for i in range(1, 8)] + [f"3.{i}" for i in range(1, 5)]
    assert [case.key for case in read_named("white-paper", VOCABULARY).written.cases] == keys


@pytest.mark.parametrize("text", ["90s", "1h30m", "20 min", "0h5m"])
def reads_a_budget_as_the_command_does(text: str) -> None:
    content = HEAD.replace("title", f"budget: {text}\ntitle") + CASE
    assert parsed(Path("c.yaml"), content.encode(), VOCABULARY).written.budget == text


ROWS: list[tuple[str, str]] = [
    ("", "c.yaml, line 1: found nothing, expected a map with 'name', 'title', 'duts' and 'cases'"),
    ("- a\n", "c.yaml, line 1: found a list, expected a map with 'name'"),
    (HEAD, "c.yaml, line 7: 'cases': found nothing, expected a list"),
    (
        HEAD + CASE + "    frame: 64\n",
        "line 10: the key 'frame' is unknown: expected one of frames, tests, parameters, effort, ",
    ),
    (
        HEAD.replace("title", "titel") + CASE,
        "line 2: the key 'titel' is unknown: expected one of name, title, duts, defaults, ",
    ),
    (
        HEAD.replace("title", "budget: soon\ntitle") + CASE,
        "line 2: 'budget': found 'soon', expected a time like '90s', '20m' or '1h30m'",
    ),
    (HEAD + "  - {key: a}\n", "line 8: the key 'title' of 'cases' is missing"),
    (HEAD + CASE + CASE, "line 10: the case 'a' appears twice"),
    (HEAD + CASE + "    key: b\n", "line 10: the key 'key' appears twice"),
    (HEAD + CASE + "    frames: [64, 63]\n", "line 10: 'frames': found '63', expected a frame of 64 to 9622 bytes"),
    (
        HEAD + CASE + "    frames: [64,\n      big]\n",
        "line 11: 'frames': found 'big', expected a frame of 64 to 9622 bytes",
    ),
    (HEAD + CASE + "    frames: [64, 128, 64]\n", "line 10: 'frames': '64' appears twice"),
    (
        HEAD + CASE + "    tests: thoughput\n",
        "line 10: 'tests': found 'thoughput', expected one of 'throughput', 'latency'",
    ),
    (HEAD + CASE + "    duts: box\n", "line 10: the device 'box' is not among 'duts': expected one of dl3d"),
    (
        HEAD + CASE + "    needs: a pony\n",
        "line 10: 'needs': found 'a pony', expected one of 'two NUMA nodes', 'a NIC'",
    ),
    (
        HEAD + CASE + "    parameters: {pages: 1}\n",
        "line 10: the parameter 'pages' is unknown: expected one of huge pages, ",
    ),
    (
        HEAD + CASE + "    parameters:\n      cores: 0\n",
        "line 11: 'cores': found '0', expected a whole number from 1 to 512",
    ),
    (
        HEAD + CASE + "    parameters: {huge pages: 1 GB}\n",
        "'huge pages': found '1 GB', expected an amount like '512 MiB'",
    ),
    (
        HEAD + CASE + "    parameters: {page size: 3 KiB}\n",
        "found '3 KiB', expected a page of '4 KiB', '2 MiB' or '1 GiB'",
    ),
    (
        HEAD + CASE + "    parameters: {flows: 16777217}\n",
        "found '16777217', expected a whole number from 1 to 16,777,216",
    ),
    (
        HEAD + CASE + "    parameters: {descriptors: 3000}\n",
        "found '3000', expected a power of two like 2048 or 4096",
    ),
    (
        HEAD + CASE + "    parameters: {descriptors: 32768}\n",
        "found '32768', expected a whole number from 64 to 16,384",
    ),
    (
        HEAD + CASE + "    parameters: {lcores: '1,1,2,2'}\n",
        "'lcores': found '1,1,2,2', expected the lcores of port 0 and port 1 like '1,2', optionally with the ",
    ),
    (HEAD + CASE + "    parameters: {server: DUT-4}\n", "'server': found 'DUT-4', expected 'this machine'"),
    (HEAD + CASE + "    parameters: {burst: [8, 8]}\n", "line 10: 'burst': '8' appears twice"),
    (HEAD + CASE + "    parameters: {burst: []}\n", "line 10: 'burst': found an empty list, expected at least 1"),
    (HEAD + CASE + "    frames: []\n", "line 10: 'frames': found an empty list, expected at least 1"),
    (
        HEAD + CASE + "    parameters: {burst: 100000}\n",
        "'burst': found '100000', expected a whole number from 1 to 512",
    ),
    (
        HEAD + CASE + "    parameters: {lcores: 1,1,2}\n",
        "line 10: 'lcores': a value with commas must be",
    ),
    (
        HEAD + CASE + "    parameters: {burst: 64,\n      flows: 2,000,000}\n",
        "line 11: 'flows': a value with commas must be in quotes, like '1,1,2'",
    ),
    (
        HEAD + CASE + "    parameters: {lcores: [1, 1, 2]}\n",
        "line 10: 'lcores': found '1', expected the lcores of port 0 and port 1",
    ),
    (
        HEAD.replace("mine", "a b") + CASE,
        "line 1: 'name': found 'a b', expected 1 to 41 letters, digits, '-', '_' or '.', starting with a letter",
    ),
    (HEAD + CASE + "    effort: {seconds: fast}\n", "line 10: 'seconds': found 'fast', expected a number"),
    (HEAD + CASE + "    effort: {seconds: 0}\n", "line 10: 'seconds': found '0', expected at least 0.1"),
    (HEAD + CASE + "    effort: {seconds: .inf}\n", "line 10: 'seconds': found '.inf', expected a number"),
    (HEAD + CASE + "    effort: {exceed: 1}\n", "line 10: 'exceed': found '1', expected at most 0.9"),
    (HEAD + CASE + "    effort: {goals: 0.9}\n", "line 10: 'goals': found '0.9', expected at most 0.5"),
    (HEAD.replace("dl3d", "[dl3d, dl3d]") + CASE, "line 3: the device 'dl3d' appears twice"),
    (HEAD.replace("dl3d", "{name: box}") + CASE, "line 3: the kind 'box' is unknown: expected one of dl3d, l3fwd, "),
    (HEAD.replace("dl3d", "{name: dl3d, without: x}") + CASE, "line 3: the parameter 'x' is unknown: expected one of"),
    (
        HEAD.replace("dl3d", "{name: dl3d, options: {mode: fast}}") + CASE,
        "line 3: 'mode' of the kind 'dl3d': found 'fast', expected one of route, xconnect, bridge",
    ),
    (
        HEAD.replace("dl3d", "\n  - name: linux\n    options:\n      wire: [rope]") + CASE,
        "line 6: 'wire' of the kind 'linux': found a list, expected 'veth'",
    ),
    (
        HEAD.replace("dl3d", "{name: ovs, options: {wire: rope}}") + CASE,
        "line 3: the option 'wire' of the kind 'ovs' is unknown: expected none",
    ),
    (
        HEAD.replace("dl3d", "{name: box, kind: external, options: {box: x}}") + CASE,
        "line 3: the option 'box' of the kind 'external' is unknown: expected one of generator, streams",
    ),
    (
        HEAD.replace("dl3d", "[dl3d, linux]") + CASE + "    parameters:\n      huge pages: [256 MiB,\n        1 GiB]\n",
        "line 12: 'huge pages': found '1 GiB', but 'linux', a device of the kind 'linux', cannot be given it: "
        "leave it out, or write 'without: [huge pages]' at that device",
    ),
    (
        HEAD.replace("dl3d", "linux").replace("cases", "  parameters: {routes: 1m}\ncases") + CASE,
        "line 7: 'routes': found '1m', but 'linux', a device of the kind 'linux', cannot be given it",
    ),
    (
        HEAD + CASE + "    tests: [latency,\n      reset]\n",
        "line 11: 'tests': found 'reset', but 'dl3d', a device of the kind 'dl3d' over memif, cannot be reset: "
        "give it 'options: {wire: veth}', or leave the test out",
    ),
    (
        HEAD.replace("dl3d", "[linux, external]").replace("throughput", "reset") + CASE,
        "line 6: 'tests': found 'reset', but 'external', a device of the kind 'external', cannot be reset from "
        "here: leave the test out, or use 'dl3 bench reset' with commands of your own",
    ),
    (
        HEAD.replace("dl3d", "[external, linux]") + CASE + "    frames: [64, 1518,\n      1519]\n",
        "line 11: 'frames': found '1519', but the wires to 'linux', a device of the kind 'linux', carry frames of "
        "up to 1518 bytes: leave it out, or measure the device between real ports as 'external'",
    ),
    (
        HEAD.replace("dl3d", "external") + CASE + "    parameters: {flows: [1, 1000]}\n",
        "line 10: 'flows': found '1000', but 'external', a device of the kind 'external', cannot be given it",
    ),
    (
        HEAD + CASE + "    streams: [{from: left, to: right}]\n    parameters: {direction: [unidirectional]}\n",
        "line 11: case 'a': 'direction' has no effect with 'streams': remove one of them",
    ),
    (
        HEAD + CASE + "    published: [white-paper 1.1, thesis 9.9]\n",
        "line 10: 'published': found 'thesis 9.9', expected one of thesis, thesis 4.1, thesis 4.2, thesis 4.3, ",
    ),
    (
        HEAD + CASE + "    published: foo\n",
        "line 10: 'published': found 'foo', expected one of thesis, white-paper",
    ),
    (HEAD.replace("  frames: [64, imix]\n", "") + CASE, "line 7: case 'a' has no 'frames': write them there or under"),
    (
        HEAD + CASE + "    published: 'a|b'\n",
        "line 10: 'published': found 'a|b', expected 1 to 80 characters without '|'",
    ),
    (HEAD + CASE + "    title: [\n", "line 11: invalid YAML: "),
    (
        HEAD + CASE + "    published: &x [a]\n    needs: *x\n",
        "line 11: invalid YAML: aliases ('*') are not supported",
    ),
    (HEAD + "  - " + "[" * 30 + "]" * 30, "line 8: invalid YAML: more than 20 levels"),
    ("name: a\x00b", "c.yaml is not valid YAML: "),
    (HEAD + CASE + '    note: "\\ud800"\n', "line 10: the text contains half of a surrogate pair, \\ud800, "),
    (HEAD + CASE + '    note: "a\\0"\n', "line 10: the text contains the character NUL"),
    (HEAD + CASE + '    "\\ud800": a\n', "a key contains half of a surrogate pair"),
]


@pytest.mark.parametrize(("text", "wanted"), ROWS)
def reports_where_what_was_found_and_what_was_expected(text: str, wanted: str) -> None:
    sentence = refused(text)
    assert wanted in sentence
    assert sentence.startswith("c.yaml")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("{lcores: '1,1,2', cores: 2}", "case 'a' has 'cores' and 'lcores': 'lcores' includes 'cores'"),
        ("{lcores: '1,1,2', generator cores: [0, 2]}", "processor 2 is among 'lcores' and among 'generator cores'"),
        (
            "{page size: 1 GiB, huge pages: [1 GiB, 1536 MiB]}",
            "1536 MiB of huge pages cannot be made of pages of 1 GiB",
        ),
        ("{family: ipv6}", "a frame of 64 bytes cannot hold IPv6, UDP and the stamp: take 84 bytes or more"),
        ("{routes: v6-1}", "routes 'v6-1' and family 'ipv4' do not match"),
    ],
)
def refuses_what_cannot_be_together(parameters: str, wanted: str) -> None:
    sentence = refused(HEAD + CASE + f"    parameters: {parameters}\n")
    assert sentence.startswith("c.yaml, line 10: ")
    assert wanted in sentence


@pytest.mark.parametrize(
    ("common", "own", "line"),
    [
        ("{}", "{method: binary, exceed: 0.5}", 11),
        ("{method: binary}", "{exceed: 0.5}", 11),
        ("{exceed: 0.5}", "{method: binary}", 11),
        ("{method: binary, exceed: 0.5}", "{}", 7),
        ("{method: binary, exceed: 0.5}", "{exceed: 0}", 0),
        ("{method: binary}", "{method: mlrsearch, exceed: 0.5}", 0),
        ("{exceed: 0.5}", "{}", 0),
    ],
)
def refuses_an_exceed_ratio_where_a_search_has_none(common: str, own: str, line: int) -> None:
    text = HEAD.replace("cases:", f"  effort: {common}\ncases:") + CASE + f"    effort: {own}\n"
    if not line:
        assert parsed(FILE, text.encode(), VOCABULARY).written.cases[0].effort.method in (None, "mlrsearch")
        return
    assert refused(text) == (
        f"c.yaml, line {line}: case 'a': 'exceed' is RFC 9971's: leave it out, or search by 'method: mlrsearch'"
    )


def refuses_rates_that_nothing_offers() -> None:
    own = "    effort: {rates: {64: [1000, 2000]}}\n"
    ok = HEAD + CASE + own + "    frames: [64, 128]\n    tests: [throughput, frame loss]\n"
    assert parsed(FILE, ok.encode(), VOCABULARY).written.cases[0].effort.rates == {"64": (1000.0, 2000.0)}
    assert refused(ok.replace("[64, 128]", "128")) == (
        "c.yaml, line 10: case 'a' has rates for frames of 64, but no such frames: remove them"
    )
    assert refused(ok.replace(", frame loss", "")) == (
        "c.yaml, line 10: case 'a' has rates, but no test 'frame loss' that offers them: add it"
    )
    assert refused(ok.replace("1000", "0")) == "c.yaml, line 10: '64': found '0', expected at least 1.0"


def refuses_more_jobs_than_the_limit() -> None:
    many = ", ".join(str(i) for i in range(1, 300))
    sentence = refused(HEAD + CASE + f"    parameters: {{flows: [{many}], burst: [{many}]}}\n")
    assert sentence == "c.yaml, line 8: with case 'a' there are 178,802 jobs: a campaign has 10,000 at most"


def refuses_bytes_that_are_no_text() -> None:
    with pytest.raises(UsageFault, match=r"c\.yaml is not text: byte 6 is not UTF-8"):
        parsed(FILE, b"name: \xff", VOCABULARY)
    with pytest.raises(UsageFault, match="a campaign has 1,048,576 at most"):
        parsed(FILE, b"#" * (1 << 21), VOCABULARY)


def reports_when_there_is_no_such_campaign(tmp_path: Path) -> None:
    with pytest.raises(
        UsageFault,
        match="unknown campaign 'smoked': specify a YAML file or a built-in campaign: contrail, kernel-notes, peers, smoke",
    ):
        path_of("smoked")
    with pytest.raises(
        UsageFault,
        match=f"^{tmp_path} is a directory: specify a YAML file or a built-in campaign: contrail, kernel-notes, peers, smoke",
    ):
        path_of(str(tmp_path))
    with pytest.raises(UsageFault, match="cannot be read: Is a directory"):
        read(tmp_path, VOCABULARY)


KEYS = st.sampled_from([*Shared.model_fields, *WrittenCase.model_fields, *WrittenCampaign.model_fields, *PARAMETERS])
WORDS = st.sampled_from(["dl3d", "64", "imix", "latency", "1", "0.5", "-1", "1e999", "1 GiB", "this machine", "ipv6"])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS | st.dates(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), below, max_size=6),
    max_leaves=40,
)
SHARED = {"frames": TREES, "tests": TREES, "parameters": st.dictionaries(st.sampled_from(list(PARAMETERS)), TREES)}
CASES = st.fixed_dictionaries(
    {"key": st.just("a"), "title": st.just("t")}, optional={**SHARED, "duts": TREES, "effort": TREES}
)
NEARLY = st.fixed_dictionaries(
    {
        "name": st.just("n"),
        "title": st.just("t"),
        "duts": st.just("dl3d"),
        "cases": st.lists(CASES, min_size=1, max_size=3),
    },
    optional={"defaults": st.fixed_dictionaries({}, optional=SHARED), "deviations": TREES},
)


def check(content: bytes) -> None:
    """Either parses or raises UsageFault with one sentence."""
    try:
        parsed(FILE, content, VOCABULARY)
    except UsageFault as fault:
        message = str(fault)
    else:
        message = "c.yaml was read"
    assert message.startswith("c.yaml")
    assert "\n" not in message


@given(st.binary() | st.text().map(str.encode))
@example(b"? [a]\n: b")
@example(b"a: &a [*a]")
@example(b"!!python/object:os.system {}")
@example(b"--- a\n--- b")
@example(b'{"\\n": 1}')
@example(b"{<<: {a: 1}}")
@settings(max_examples=300)
def reads_any_bytes_or_refuses_them(content: bytes) -> None:
    check(content)


@given(TREES | NEARLY)
@settings(max_examples=200)
def reads_any_tree_or_refuses_it(tree: Any) -> None:
    check(yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "replace"))


@given(st.sampled_from(shipped()), st.integers(0, 5000), st.integers(0, 20), st.binary(max_size=5))
@settings(max_examples=300)
def reads_a_campaign_that_was_damaged_or_refuses_it(path: Path, start: int, n: int, put: bytes) -> None:
    content = path.read_bytes()
    check(content[:start] + put + content[start + n :])
