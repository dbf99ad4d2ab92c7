"""What 'dl3 flow' and 'dl3 show flows' ask dl3d, and what they print."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.flow_usage import FlowRates, draw_flows
from dl3.cli.main import app
from dl3.cli.printing import out
from dl3.control import client
from dl3.control.flow_replies import FlowUsage
from dl3.model.fault import Fault

KEY: dict[str, Any] = {"src": "10.0.0.1", "dst": "10.1.0.1", "protocol": "udp", "src_port": 5000, "dst_port": 53}
WORDS = ("10.0.0.1", "10.1.0.1", "udp", "5000", "53")
FLOW = {**KEY, "vrf": "main", "action": {"do": "drop"}, "idle_for_s": 1.25, "packets": 1234, "bytes": 99999}
FAMILY = {"flows": 250, "max": 1000, "ending": 1, "lines": 445, "moved": 7, "refused": 2}
USAGE: dict[str, Any] = {
    "ipv4": FAMILY,
    "ipv6": {**FAMILY, "max": 0},
    "bytes": 64 << 20,
    **dict.fromkeys(("added", "deleted", "idle", "reached_end"), 10),
    "missing": "route",
    "timeouts_s": [30, 300],
    "ended": {"last": 17},
}
Asked = list[tuple[str, dict[str, Any]]]
Run = Callable[..., tuple[Result, Asked]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with these replies; returns the result and what was asked."""

    def run_with(replies: Sequence[Any], *words: str) -> tuple[Result, Asked]:
        left, asked = list(replies), Asked()

        def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
            given = json.loads(question)
            asked.append((given["method"], given["params"]))
            reply = left.pop(0)
            if isinstance(reply, OSError):
                raise reply
            what = {"error": {"code": -32000, "message": reply}} if isinstance(reply, str) else {"result": reply}
            return json.dumps({"jsonrpc": "2.0", "id": 1, **what}).encode()

        monkeypatch.setattr(client, "exchange", exchange)
        done = CliRunner().invoke(app, [*words, "--socket", "/nowhere"])
        assert not left, (left, done.output)
        return done, asked

    return run_with


def _fault(done: Result) -> str:
    assert isinstance(done.exception, Fault), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("add", *WORDS, "drop"), {"op": "add", **KEY, "action": {"do": "drop"}}),
        (
            (
                "change",
                *WORDS,
                "vrf",
                "red",
                "via",
                "10.9.0.2",
                "dev",
                "east",
                "dscp",
                "0",
                "subscriber",
                "7",
                "idle",
                "30",
            ),
            {
                "op": "replace",
                **KEY,
                "vrf": "red",
                "action": {"do": "via", "via": "10.9.0.2", "dev": "east", "subscriber": 7, "dscp": 0},
                "idle_s": 30,
            },
        ),
        (("add", "::1", "::2", "89", "route", "ends", "60"), None),
        (("delete", *WORDS, "vrf", "red"), {"op": "delete", **KEY, "vrf": "red"}),
    ],
)
def a_change_is_asked_for_as_it_was_given(run: Run, words: tuple[str, ...], change: dict[str, Any] | None) -> None:
    done, asked = run([{"applied": 1, "results": []}], "flow", *words)
    if change is None:
        change = {"op": "add", "src": "::1", "dst": "::2", "protocol": 89, "src_port": 0, "dst_port": 0}
        change |= {"action": {"do": "route"}, "ends_s": 60}
    assert asked == [("flows.change", {"changes": [change]})]
    assert done.stdout == {"add": "added", "change": "changed", "delete": "deleted"}[words[0]] + ": 1 flow\n"


def a_refused_change_is_a_failure(run: Run) -> None:
    reply = {"applied": 0, "results": [{"index": 0, "reason": "changes[0]: the table is full"}]}
    done, _ = run([reply], "flow", "add", *WORDS, "drop")
    assert _fault(done) == "the table is full"


def mistakes_are_reported_before_dl3d_is_asked(run: Run) -> None:
    for words, sentence in (
        (("add", *WORDS), "a flow without an action"),
        (("delete", *WORDS, "drop"), "unexpected 'drop' after the flow"),
        (("find", "10.0.0.1"), "a flow begins with SOURCE DESTINATION PROTOCOL"),
    ):
        done, asked = run([], "flow", *words)
        assert sentence in _fault(done)
        assert not asked


def a_flow_is_found_or_not(run: Run) -> None:
    done, asked = run([{"found": True, "flow": FLOW}], "flow", "find", *WORDS)
    assert asked == [("flows.find", KEY)]
    header, row = done.stdout.splitlines()
    assert " ".join(header.split()) == "flow action packets bytes idle for ends"
    assert " ".join(row.split()) == "10.0.0.1 10.1.0.1 udp 5000 53 drop 1,234 99,999 1.2 s -"
    done, _ = run([{"found": False, "flow": None}], "flow", "find", *WORDS)
    assert "there is no such flow" in _fault(done)
    done, _ = run([{"found": False, "flow": None}], "flow", "find", *WORDS, "--json")
    assert (json.loads(done.stdout), done.exit_code) == ({"found": False, "flow": None}, 1)


def pages_are_asked_for_until_there_are_enough_flows(run: Run) -> None:
    empty, page = {"flows": [], "next": 7}, {"flows": [FLOW] * 1000, "next": 9}
    done, asked = run([empty, page, {"flows": [FLOW], "next": 11}], "flow", "list", "--limit", "1001", "--after", "3")
    assert asked == [("flows.list", {"after": n, "limit": limit}) for n, limit in ((3, 1000), (7, 1000), (9, 1))]
    assert done.stdout.splitlines()[-1] == "More: --after 11"
    done, _ = run([{"flows": [], "next": None}], "flow", "list")
    assert done.stdout == "There are no flows.\n"


def flows_of_vrfs_and_of_icmp_are_shown_as_they_are_given(run: Run) -> None:
    icmp = {**FLOW, "protocol": "icmp", "src_port": 7, "dst_port": 0, "vrf": "red", "idle_s": 30}
    esp = {**FLOW, "protocol": "esp", "src_port": 0, "dst_port": 0, "ends_s": 7.4}
    done, _ = run([{"flows": [icmp, esp], "next": None}], "flow", "list")
    _, first, second = (" ".join(line.split()) for line in done.stdout.splitlines())
    assert first == "10.0.0.1 10.1.0.1 icmp 7 vrf red drop 1,234 99,999 1.2 s idle 30 s"
    assert second == "10.0.0.1 10.1.0.1 esp drop 1,234 99,999 1.2 s in 7 s"


def _job(state: str, **more: Any) -> dict[str, Any]:
    return {"state": state, "path": "/f", "done": 5, "of": 5, "seconds": 2.0, **more}


def a_load_is_followed_to_its_end(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [{"path": "/f"}, _job("running"), _job("running"), _job("done")]
    done, asked = run(replies, "flow", "load", "x", "--reset")
    assert asked[0] == ("flows.load", {"path": f"{tmp_path}/x", "counters": False})
    assert [method for method, _ in asked[1:]] == ["flows.job"] * 3
    assert done.stdout == "loaded: 5 flows in 2.0 s, 2 per second\n"
    done, asked = run([{"path": "/f"}, _job("done")], "flow", "load", "--delete")
    assert asked[0] == ("flows.load", {"op": "delete"})
    assert done.stdout.startswith("deleted: 5 flows")
    done, _ = run([{"path": "/f"}], "flow", "save", "--no-wait")
    assert (done.exit_code, done.stdout) == (0, "")
    _, asked = run([{"path": "/f"}, _job("done")], "flow", "save", "--force")
    assert asked[0] == ("flows.save", {"force": True})


def a_load_that_fails_says_why(run: Run, tmp_path: Path) -> None:
    done, _ = run([{"path": "/f"}, _job("failed", reason="/f is damaged")], "flow", "load", "/f")
    assert _fault(done) == "/f is damaged"
    refused = _job("done", refused=2, first_refused=4, reason="the table is full")
    done, _ = run([{"path": "/f"}, refused], "flow", "load", "/f")
    assert done.stdout.startswith("loaded: 3 flows")
    assert _fault(done) == "/f: 2 flows refused, the first one is flow 4 of the file: the table is full"
    done, _ = run([{"path": "/f"}, _job("running", path="/g"), _job("done", path="/g")], "flow", "load", "/f")
    assert "another load or save" in _fault(done)
    (tmp_path / "f").touch()
    for name, is_hinted in (("f", True), ("missing/f", False)):
        done, _ = run([f"cannot open {name}: No such file or directory"], "flow", "load", str(tmp_path / name))
        assert ("in its own mount namespace" in _fault(done)) == is_hinted


def _ended(seq: int) -> dict[str, Any]:
    return {
        **KEY,
        "seq": seq,
        "ended_ms": 0,
        "reason": "idle",
        "do": "drop",
        "idle_for_s": 30,
        "packets": 2,
        "bytes": 120,
    }


def ended_flows_are_printed_and_missed_ones_counted(run: Run) -> None:
    pages = [
        {"ended": [_ended(20)], "next": 20, "lost": 2, "more": True},
        {"ended": [], "next": 20, "lost": 0, "more": False},
    ]
    done, asked = run([USAGE, *pages], "flow", "watch", "--once")
    assert [params.get("after") for _, params in asked] == [None, 17, 20]
    assert done.stdout.partition(" ")[2] == "idle: 10.0.0.1 10.1.0.1 udp 5000 53, 2 packets, 120 bytes\n"
    done, asked = run(pages, "flow", "watch", "--once", "--after", "0", "--json")
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == [20]
    assert asked[0][1]["after"] == 0


def a_restart_of_dl3d_is_told_and_the_watch_goes_on(run: Run) -> None:
    usage = {**USAGE, "ended": {"start": 100, "last": 17}}
    replies = [
        usage,
        {"start": 100, "ended": [_ended(18)], "next": 18, "lost": 0, "more": False},
        ConnectionRefusedError(),
        FileNotFoundError(),
        {"start": 200, "ended": [_ended(1)], "next": 1, "lost": 0, "more": False},
        "stop",
    ]
    done, asked = run(replies, "flow", "watch", "--interval", "0.1")
    given = [(params.get("start"), params.get("after")) for _, params in asked[1:]]
    assert given == [(100, 17), (100, 18), (100, 18), (100, 18), (200, 1)]
    assert done.stdout.count("idle: 10.0.0.1") == 2
    assert done.stderr.count("waiting for dl3d") == 1
    assert done.stderr.count("begin anew") == 1
    assert _fault(done) == "stop"


def a_dl3d_that_does_not_run_is_not_waited_for(run: Run) -> None:
    done, _ = run([FileNotFoundError()], "flow", "watch")
    assert "no such socket" in _fault(done)


def the_table_is_shown_with_rates() -> None:
    rates = FlowRates()
    with out.capture() as first:
        out.print(draw_flows(FlowUsage.model_validate(USAGE), rates))
    lines = [line.split() for line in first.get().splitlines()]
    assert ["IPv4", "250", "1,000", "25.0%", "1", "7", "2"] in lines
    assert not any(words[:1] == ["IPv6"] for words in lines)
    assert ["added", "10", "-"] in lines
    assert ["memory", "when", "full", "64", "MiB"] in lines
    grown = FlowUsage.model_validate({**USAGE, "added": 10_000_000})
    assert (rates.of(grown)["added"] or 0) > 0
    assert rates.of(grown)["added"] == 0
    assert rates.of(FlowUsage.model_validate(USAGE))["added"] is None  # dl3d was restarted


def learning_is_shown_with_all_that_was_refused() -> None:
    def lines_of(**learning: Any) -> list[list[str]]:
        with out.capture() as shown:
            out.print(draw_flows(FlowUsage.model_validate({**USAGE, "learning": learning}), FlowRates()))
        return [line.split() for line in shown.get().splitlines()]

    refused = {
        "over_rate": 1001,
        "over_vrf": 1002,
        "over_interface": 1003,
        "unroutable": 1004,
        "full": 1005,
        "invalid": 1006,
        "at_limit": 1007,
        "lost": 1008,
    }
    lines = lines_of(on=True, flows=5, learnt=9, timeout_s=30, rate=100_000, per_interface=7000, **refused)
    assert ["flows", "at", "present", "5", "30", "s", "idle"] in lines
    assert ["refused:", "rate", "1,001", "100,000", "per", "second"] in lines
    assert ["refused:", "flows", "of", "the", "input", "interface", "1,003", "7,000"] in lines
    assert all(any(f"{n:,}" in words for words in lines) for n in refused.values())
    assert ["flows", "at", "present", "5", "off"] in lines_of(on=False, flows=5, learnt=9)
    assert not any(words[:1] == ["refused:"] for words in lines_of(on=False))


def the_command_of_the_table_asks_once(run: Run) -> None:
    done, asked = run([USAGE], "show", "flows", "--json")
    assert asked == [("flows", {})]
    assert json.loads(done.stdout)["ipv4"]["flows"] == 250
