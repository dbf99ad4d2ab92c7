"""What dl3 port asks dl3d, and what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.control import client

ROW: dict[str, Any] = {
    "port": 2,
    "name": "c",
    "device": "net_null2",
    "mac": "02:00:00:00:00:03",
    "mtu": 1400,
    "link_up": True,
    "rx_queues": 1,
    "speed_mbps": None,
    "addresses": [],
    **dict.fromkeys(("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"), 0),
    **dict.fromkeys(("rx_missed", "rx_no_mbuf", "rx_errors", "tx_errors"), 0),
}


def _asked(monkeypatch: pytest.MonkeyPatch, reply: dict[str, Any], *words: str) -> tuple[Any, str]:
    """The method and its parameters, and what was printed."""
    asked: list[Any] = []

    def exchange(_path: Path, question: bytes, _timeout_s: float) -> bytes:
        given = json.loads(question)
        asked.append((given["method"], given["params"]))
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": reply}).encode()

    monkeypatch.setattr(client, "exchange", exchange)
    done = CliRunner().invoke(app, ["port", *words, "--socket", str(Path("/nowhere"))])
    assert done.exit_code == 0, done.output
    (only,) = asked
    return only, done.stdout


def asks_for_a_port_with_the_keys_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, said = _asked(monkeypatch, {"added": ROW}, "add", "c", "net_null2", "--mtu", "1400")
    assert asked == ("ports.add", {"name": "c", "device": "net_null2", "mtu": 1400})
    assert said == "added: port c (02:00:00:00:00:03, MTU 1400)\n"
    words = ("add", "c", "net_null2", "--address", "192.0.2.1/24", "--address", "2001:db8::1/64")
    asked, _ = _asked(monkeypatch, {"added": ROW}, *words)
    assert asked[1]["addresses"] == ["192.0.2.1/24", "2001:db8::1/64"]


def counts_the_routes_that_a_removed_port_leaves_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = {"removed": "c", "routes_without_next_hop": 1234, "routes_with_fewer_next_hops": 5}
    asked, said = _asked(monkeypatch, reply, "remove", "c")
    assert asked == ("ports.remove", {"name": "c"})
    assert said == "removed: port c; routes without a next hop: 1,234; routes with fewer next hops: 5\n"
    _, said = _asked(monkeypatch, reply, "remove", "c", "--json")
    assert json.loads(said) == reply
