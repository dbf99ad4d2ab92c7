"""What 'dl3 acl' asks dl3d, and what it prints."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.control import client
from dl3.model.fault import Fault, UsageFault

COUNT = {"packets": 1234, "bytes": 99}
RULES: list[dict[str, Any]] = [
    {"name": None, "rule": "permit udp", **COUNT},
    {"name": "no-telnet", "rule": "deny tcp to_port 23", **COUNT},
]
LIST: dict[str, Any] = {
    "name": "a",
    "source": "acl",
    "n_rules": 2,
    "build_s": 0.5,
    "default": "deny",
    "rest": COUNT,
    "next": None,
}
USE = {"interface": "east", "direction": "in", "list": "a", "exists": False}
PACKET = ("10.0.0.1", "10.1.0.1", "tcp", "40000", "23")


def _asked(monkeypatch: pytest.MonkeyPatch, reply: Any, *words: str, lists: Any = None) -> tuple[Result, Sequence[Any]]:
    """What was printed, and the methods with their parameters. lists: the reply of the method 'acls'."""
    asked: list[Any] = []

    def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
        given = json.loads(question)
        asked.append((given["method"], given["params"]))
        found = lists if lists is not None and given["method"] == "acls" else reply
        what = {"error": {"code": -32000, "message": found}} if isinstance(found, str) else {"result": found}
        return json.dumps({"jsonrpc": "2.0", "id": 1, **what}).encode()

    monkeypatch.setattr(client, "exchange", exchange)
    return CliRunner().invoke(app, ["acl", *words, "--socket", "/nowhere"]), asked


def lists_and_their_uses_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    done, asked = _asked(monkeypatch, {"lists": [{**LIST, "rules": []}], "use": [USE]}, "show")
    assert asked == [("acls", {})]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1] == ["a", "acl", "2", "deny", "1,234", "0.500", "s"]
    assert rows[4] == ["east", "in", "a", "no", "such", "interface"]
    done, _ = _asked(monkeypatch, {"lists": [], "use": []}, "show")
    assert done.stdout == "There are no access lists.\n"


def filters_of_linux_are_not_deleted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    reply: Any = {"lists": [{**LIST, "name": "tc:east:in", "source": "tc", "rules": []}], "use": []}
    done, _ = _asked(monkeypatch, reply, "set", "tc:east:in", "--delete")
    assert "delete them with tc" in str(done.exception)


def rules_of_a_list_are_shown_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reply: Any = {"lists": [{**LIST, "rules": RULES}], "use": []}
    done, asked = _asked(monkeypatch, reply, "show", "a", "--after", "5")
    assert asked == [("acls", {"list": "a", "after": 5, "limit": 100})]
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert rows == [
        ["6", "-", "permit", "udp", "1,234", "99"],
        ["7", "no-telnet", "deny", "tcp", "to_port", "23", "1,234", "99"],
        ["-", "default", "deny", "1,234", "99"],
    ]
    limited = {"name": None, "rule": "permit police.rate 1Mbit/s police.burst 64kB", **COUNT, "red": COUNT}
    reply["lists"][0]["rules"] = [limited, RULES[1]]
    done, _ = _asked(monkeypatch, reply, "show", "a")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0][-4:] == ["red", "packets", "red", "bytes"]
    assert rows[1][-4:] == ["1,234", "99", "1,234", "99"]
    assert rows[2][-4:] == ["1,234", "99", "-", "-"]
    reply["lists"][0]["next"] = 7
    done, _ = _asked(monkeypatch, reply, "show", "a", "--after", "5")
    assert done.stdout.splitlines()[-1] == "More: --after 7"
    assert "default" not in done.stdout


def a_packet_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [{"number": 1, "name": None, "differs": "protocol"}]
    reply: dict[str, Any] = {
        "list": "a",
        "do": "deny",
        "number": 2,
        "name": "no-telnet",
        "rule": RULES[1]["rule"],
        "before": before,
    }
    done, asked = _asked(monkeypatch, reply, "check", *PACKET, "--interface", "east", "--tcp-flags", "syn,ack")
    packet = {"src": "10.0.0.1", "dst": "10.1.0.1", "protocol": "tcp", "src_port": 40000, "dst_port": 23}
    assert asked == [("acl.check", {"interface": "east", "direction": "in", **packet, "tcp_flags": 0x12})]
    lines = done.stdout.splitlines()
    assert lines[0] == "a: deny, rule 2 'no-telnet': deny tcp to_port 23"
    assert lines[-1].split() == ["1", "-", "protocol"]
    reply |= {"do": "permit", "name": None, "rule": "permit police.rate 1Mbit/s police.burst 64kB", "before": []}
    done, _ = _asked(monkeypatch, reply, "check", *PACKET, "--list", "a")
    assert done.stdout.endswith("64kB; what is above police.rate is dropped\n")
    reply |= {"number": None, "rule": None}
    done, asked = _asked(monkeypatch, reply, "check", "::1", "::2", "icmp6", "128", "0", "--list", "a", "--local")
    assert asked[0][1] == {
        "list": "a",
        "src": "::1",
        "dst": "::2",
        "protocol": "icmp6",
        "icmp_type": 128,
        "icmp_code": 0,
        "local": True,
    }
    assert done.stdout == "a: permit, no rule matches\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("check", "--list", "a"), "expected either PACKET or --frame"),
        (("check", *PACKET), "expected either --list or --interface"),
        (("check", *PACKET[:2], "--list", "a"), "a packet is SOURCE DESTINATION PROTOCOL"),
        (("check", *PACKET[:3], "--list", "a"), "a packet of tcp has two ports, after the protocol"),
        (("check", *PACKET[:4], "--list", "a"), "a packet of tcp has two ports, after the protocol"),
        (
            ("check", *PACKET, "--list", "a", "--fragment", "later"),
            "a later fragment of tcp has no ports, type or code",
        ),
        (
            ("check", "10.0.0.1", "10.0.0.2", "icmp", "8", "--list", "a"),
            "a packet of icmp has type and code, after the protocol",
        ),
        (("check", "10.0.0.300", *PACKET[1:], "--list", "a"), "invalid address '10.0.0.300'"),
        (("check", "::1", *PACKET[1:], "--list", "a"), "of the same family"),
        (("check", *PACKET[:2], "udp", "1", "2", "--list", "a", "--tcp-flags", "syn"), "--tcp-flags are for tcp"),
        (("check", *PACKET[:4], "65536", "--list", "a"), "invalid number '65536'"),
        (("check", "10.0.0.1", "10.0.0.2", "icmp", "8", "256", "--list", "a"), "expected 0 to 255"),
        (("check", "10.0.0.1", "10.0.0.2", "gre", "1", "2", "--list", "a"), "gre has no ports, type or code"),
        (("check", *PACKET, "--list", "a", "--tcp-flags", "sin"), "unknown TCP flag 'sin'"),
        (("set", "a"), "expected either FILE or --delete"),
        (("set", "a", "/missing/file"), "/missing/file cannot be read: No such file or directory; choose"),
    ],
)
def mistakes_are_reported_before_dl3d_is_asked(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    done, asked = _asked(monkeypatch, {}, *words)
    assert isinstance(done.exception, UsageFault)
    assert sentence in str(done.exception)
    assert not asked


def dl3d_is_asked_about_unknown_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    done, asked = _asked(
        monkeypatch, "invalid protocol", "check", *PACKET[:2], "tpc", "1", "2", "--list", "a", lists="-"
    )
    assert asked[0] == ("acl.check", {"list": "a", "src": "10.0.0.1", "dst": "10.1.0.1", "protocol": "tpc"})
    assert isinstance(done.exception, UsageFault)


def a_list_is_set_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, reply = tmp_path / "rules", {"lists": 1, "uses": 0}
    file.write_text("# rules\n\ndeny tcp to_port 23 # telnet\n  permit\n")
    done, asked = _asked(monkeypatch, reply, "set", "a", str(file), "--deny")
    assert asked == [("acl.change", {"lists": {"a": {"rules": ["deny tcp to_port 23", "permit"], "default": "deny"}}})]
    assert done.stdout == "set: list a, 2 rules\n"
    done, _ = _asked(monkeypatch, "list 'a', rules[1]: empty; nothing was changed", "set", "a", str(file))
    assert isinstance(done.exception, Fault)
    assert str(done.exception) == f"{file}:4: empty; nothing was changed"
    file.write_bytes(b"permit \xff")
    done, asked = _asked(monkeypatch, reply, "set", "a", str(file))
    assert str(done.exception) == f"{file} is not a text file in UTF-8; choose another file"
    assert not asked


def a_list_that_no_interface_uses_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    reply, there = {"lists": 0, "uses": 0}, {"lists": [{**LIST, "rules": []}], "use": []}
    done, asked = _asked(monkeypatch, reply, "set", "a", "--delete", lists=there)
    assert asked == [("acls", {}), ("acl.change", {"lists": {"a": None}})]
    assert done.stdout == "deleted: list a\n"
    for name, use, sentence in (
        ("b", [], "there is no list 'b': 'dl3 acl show' lists them"),
        ("a", [USE], "list 'a' is in use (east in): first 'dl3 acl use east in' without a list"),
    ):
        done, asked = _asked(monkeypatch, reply, "set", name, "--delete", lists={**there, "use": use})
        assert isinstance(done.exception, UsageFault)
        assert str(done.exception) == sentence
        assert asked == [("acls", {})]


def a_list_that_does_not_exist_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    there, none = {"lists": [{**LIST, "rules": []}], "use": [USE]}, {"lists": [], "use": [USE]}
    missing = "there is no list 'b': 'dl3 acl show' lists them"
    done, _ = _asked(monkeypatch, none, "show", "b")
    assert str(done.exception) == missing
    for where, sentence in (
        (("--list", "b"), missing),
        (("--interface", "west"), "interface 'west' uses no list in direction in: 'dl3 acl show' shows where"),
        (("--interface", "east", "--direction", "out"), "interface 'east' uses no list in direction out"),
        (("--interface", "east"), "no such list"),
    ):
        done, _ = _asked(monkeypatch, "no such list", "check", *PACKET, *where, lists=there)
        assert str(done.exception).startswith(sentence)


def an_interface_uses_a_list_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    reply, wanted = {"lists": 1, "uses": 1}, {"interface": "east", "direction": "out"}
    there = {"lists": [], "use": [{**USE, "exists": True}]}
    done, asked = _asked(monkeypatch, reply, "use", "east", "out", "a", lists=there)
    assert asked == [("acl.change", {"use": [{**wanted, "list": "a"}]}), ("acls", {})]
    assert done.stdout == "east out: list a\n"
    assert not done.stderr
    done, _ = _asked(monkeypatch, reply, "use", "east", "out", "a", lists={"lists": [], "use": [USE]})
    assert done.stderr == "note: there is no interface 'east' yet; 'dl3 show ports' lists them\n"
    done, asked = _asked(monkeypatch, reply, "use", "east", "out")
    assert asked == [("acl.change", {"use": [wanted]})]
    assert done.stdout == "east out: no list\n"
