"""Rules and frames of the comparison of access lists."""

from pathlib import Path

import pytest
import yaml

from dl3.bench import acls
from dl3.bench.acls import (
    Rule,
    make_acl_dl3d,
    make_frames,
    make_l3fwd_acl,
    rules_of_dl3d,
    rules_of_l3fwd,
)
from dl3.bench.sides import Entry, PairSettings
from dl3.bench.workplace import Workplace
from dl3.lab.tables import Tuple4

DENYING = Rule(0x0A010200, 24, 0x30010203, 32, 53, 62, is_permitted=False)
PERMITTING = Rule(0x0A010200, 24, 0x30010203, 32, 1024, 65535, is_permitted=True)


def _matches(rule: Rule, flow: Tuple4) -> bool:
    """As a linear model has it."""
    masks = [0xFFFFFFFF << (32 - length) & 0xFFFFFFFF for length in (rule.src_length, rule.dst_length)]
    addresses = (flow.src & masks[0], flow.dst & masks[1])
    return addresses == (rule.src, rule.dst) and rule.first_port <= flow.dst_port <= rule.last_port


def writes_the_same_rules_for_both() -> None:
    rules = (DENYING, PERMITTING)
    assert rules_of_l3fwd(rules) == (
        "@10.1.2.0/24 48.1.2.3/32 0 : 65535 53 : 62 0x11/0xff\n"
        "R10.1.2.0/24 48.1.2.3/32 0 : 65535 1024 : 65535 0x11/0xff 1\n"
    )
    common = {"protocol": "udp", "from": "10.1.2.0/24", "to": "48.1.2.3/32"}
    assert rules_of_dl3d(rules) == [
        {"name": "rule-0", **common, "to_port": "53-62", "do": "deny"},
        {"name": "rule-1", **common, "to_port": "1024-65535", "do": "permit"},
    ]


@pytest.mark.parametrize("number", [1000, 10_000])
def makes_as_many_rules_with_clear_host_bits(number: int) -> None:
    rules = acls.make_rules(number)
    assert len(rules) == number
    assert all(rule.src % (1 << (32 - rule.src_length)) == 0 for rule in rules)
    assert all(rule.dst % (1 << (32 - rule.dst_length)) == 0 for rule in rules)
    assert {rule.src >> 24 for rule in rules} == {10}
    assert {rule.dst >> 24 for rule in rules} == {48}
    assert all(rule.first_port <= rule.last_port for rule in rules)


def makes_frames_that_are_permitted_by_the_first_rule_that_matches() -> None:
    rules = acls.make_rules(1000)
    frames = make_frames(rules)
    assert len(frames) == 65_536
    for frame in frames[:500]:
        assert next(rule for rule in rules if _matches(rule, frame)).is_permitted


def uses_every_rule_that_permits() -> None:
    rules = acls.make_rules(100)
    frames = make_frames(rules)[:5000]
    for rule in rules:
        assert any(_matches(rule, frame) for frame in frames) is rule.is_permitted


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Programs and tables in a folder of the test."""
    for program in (tmp_path / "l3fwd" / "program", tmp_path / "dl3d"):
        program.parent.mkdir(exist_ok=True)
        program.touch()
    monkeypatch.setattr(acls, "PEERS", tmp_path)
    monkeypatch.setattr(acls, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(acls, "DL3D", tmp_path / "dl3d")
    monkeypatch.setattr(acls, "march_of_peer", lambda _: "native")
    monkeypatch.setattr(acls, "march_of_build", lambda _: "native")
    return Workplace(tmp_path, tmp_path / "onecore.so")


def starts_both_with_the_same_rules_and_frames(place: Workplace) -> None:
    ours = make_acl_dl3d(Entry("dl3d with access lists", rules=20), PairSettings(), place)
    peer = make_l3fwd_acl(Entry("l3fwd access lists", rules=20), PairSettings(), place)
    assert ours.job.table == peer.job.table
    whole = yaml.safe_load(Path(ours.job.command[1]).read_text(encoding="utf-8"))
    assert whole["acl"]["use"] == [{"interface": "in", "direction": "in", "list": "bench"}]
    names = [rule["name"] for rule in whole["acl"]["lists"]["bench"]]
    assert names == [*(f"rule-{i}" for i in range(20)), "rest"]
    rules4, rules6 = (word.split("=")[1] for word in peer.job.command if word.startswith("--rule_ipv"))
    assert len(Path(rules4).read_text(encoding="ascii").splitlines()) == 20
    assert Path(rules6).read_text(encoding="ascii").startswith("R0:")
    assert "--lookup=acl" in peer.job.command
