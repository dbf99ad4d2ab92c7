"""Output about TAP interfaces, classes and the mirror, and the exit status of verify."""

import json
import socket
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.model.fault import UsageFault

TTL = {"name": "ttl", "rate_pps": 1000, "burst": 200, "overflow": "drop", "text": "TTL expired"}
TAPS = {
    "namespace": "core",
    "namespace_is_own": True,
    "keep": True,
    "taps": [
        {
            "port": "left",
            "name": "left",
            "ifindex": 7,
            "carrier": True,
            "adopted": False,
            "held": True,
            "punted": 12,
            "injected": 34,
        },
        {
            "port": "right",
            "name": "",
            "ifindex": 0,
            "carrier": False,
            "adopted": False,
            "held": False,
            "punted": 0,
            "injected": 0,
        },
    ],
    "classes": [{**TTL, "punted": 5, "over_limit": 6, "refused": 7, "ring_full": 8}],
}
INTERFACE = {
    "interface": 2,
    "name": "left.5",
    "port": "left",
    "vrf": "blue",
    "mtu": 1500,
    "mac": "02:00:00:00:00:01",
    "vlans": ["802.1Q 5"],
    "up": True,
    "all_to_linux": False,
    "ip4_to_linux": True,
    "ip6_to_linux": False,
}
COUNTS = (
    *("messages", "ignored", "malformed", "overruns", "dumps", "dumps_restarted", "dumps_partial", "routes4"),
    *(
        "routes6",
        "neighbours",
        "nexthops",
        "control_bytes",
        "audited",
        "drifted",
        "drift_lasting",
        "managed",
        "receive_buffer_bytes",
    ),
)
MIRROR = dict.fromkeys(COUNTS, 3) | {
    "state": "following",
    "last_dump_s": 0.25,
    "interfaces": [INTERFACE],
    "vrfs": ["main", "green"],
}
MIRROR["bursts"] = [{"at_ns": 9_500_000, "us": 500.0, "messages": 1200}]
THING = {"what": "nftables forward hook", "where": "table ip f chain c", "effect": "Linux forwards", "alike": 1}
DECISION = {
    "address": "10.1.2.3",
    "vrf": "main",
    "found": True,
    "prefix": "10.0.0.0/8",
    "route_kind": "via",
    "kind": "via",
    "via": "192.0.2.2",
    "port": "left",
    "interface": "left.5",
    "nexthop": 4,
    "workers_agree": True,
    "mac": "02:00:00:00:00:02",
    "source_mac": "02:00:00:00:00:01",
    "vlans": ["802.1Q 5"],
    "mtu": 1500,
    "verdict": "forward",
    "class": None,
    "text": "handed to the device",
}
SAID = {
    "agrees": False,
    "differs": "Linux sends it to right",
    "error": None,
    "prefix": "10.0.0.0/8",
    "table": 254,
    "metric": 20,
    "type": "unicast",
    "via": "192.0.2.9",
    "interface": "right",
}


def ask(folder: Path, result: object, *words: str) -> tuple[Result, dict[str, object]]:
    """The command against a dl3d that replies to one request; returns what was requested."""
    path = folder / "dl3d.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    asked: dict[str, object] = {}

    def serve() -> None:
        with listener, listener.accept()[0] as peer:
            asked.update(json.loads(peer.makefile("rb").readline()))
            peer.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode() + b"\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    done = CliRunner().invoke(app, [*words, "--socket", str(path)])
    thread.join(5)
    path.unlink()
    return done, asked


@pytest.mark.parametrize(
    ("what", "result", "words"),
    [
        ("taps", TAPS, ("core", "owned by dl3d", "left", "12", "34", "Gone from Linux: right")),
        ("classes", TAPS, ("ttl", "1,000", "200", "drop", "TTL expired")),
        ("mirror", MIRROR, ("following", "left.5", "802.1Q 5", "blue", "main, green", "IPv4", "0.250 s")),
        ("unsupported", {"found": 3, "unsupported": [THING]}, ("nftables forward hook", "and 2 more")),
        ("unsupported", {"found": 0, "unsupported": []}, ("Workers support everything",)),
    ],
)
def show_reports_linux(what: str, result: dict[str, object], words: tuple[str, ...], tmp_path: Path) -> None:
    done, asked = ask(tmp_path, result, "show", what)
    assert done.exit_code == 0
    assert asked["method"] == ("taps" if what == "classes" else what)
    for word in words:
        assert word in done.stdout
    done, _ = ask(tmp_path, result, "show", what, "--json")
    assert json.loads(done.stdout) == result


def verify_leaves_with_0_when_all_is_the_same(tmp_path: Path) -> None:
    done, asked = ask(tmp_path, {"compared": 50, "differences": 0, "listed": []}, "verify", "--sample", "50")
    assert (done.exit_code, asked["params"]) == (0, {"sample": 50, "limit": 100})
    assert "compared 50 routes: no difference" in done.stdout


def verify_lists_differences_and_leaves_with_1(tmp_path: Path) -> None:
    result = {"compared": 1000000, "macs": 40, "differences": 3, "listed": ["10.0.0.0/8: workers have no route"]}
    done, asked = ask(tmp_path, result, "verify")
    assert (done.exit_code, asked["params"]) == (1, {"limit": 100})
    total = "compared 1,000,000 routes and 40 MAC addresses of bridges: 3 differences"
    for line in ("10.0.0.0/8: workers have no route", "and 2 more", total):
        assert line in done.stdout
    done, _ = ask(tmp_path, result, "verify", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, result)


def verify_reports_a_single_difference_as_one(tmp_path: Path) -> None:
    done, _ = ask(
        tmp_path, {"compared": 1, "differences": 1, "listed": ["10.0.0.0/8: workers have no route"]}, "verify"
    )
    assert "compared 1 route: 1 difference\n" in done.stdout
    done, _ = ask(tmp_path, {"compared": 3, "macs": 1, "differences": 0, "listed": []}, "verify")
    assert "compared 3 routes and 1 MAC address of bridges: no difference\n" in done.stdout


@pytest.mark.parametrize("path", ["none", "", "file"])
def verify_does_not_leave_with_1_when_it_could_not_compare(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["verify", "--socket", str(tmp_path / path)])
    assert isinstance(done.exception, UsageFault), "which is exit code 2"
    assert str(tmp_path / path) in str(done.exception)


def route_reports_what_linux_would_do_otherwise(tmp_path: Path) -> None:
    done, asked = ask(tmp_path, {**DECISION, "linux": SAID}, "show", "route", "10.1.2.3", "--vrf", "blue")
    assert asked["params"] == {"address": "10.1.2.3", "vrf": "blue"}
    for word in ("left.5", "802.1Q 5", "to 02:00:00:00:00:02, from 02:00:00:00:00:01", "Linux sends it to right"):
        assert word in done.stdout
    assert "unicast to 10.0.0.0/8 via 192.0.2.9 dev right (table 254, metric 20)" in done.stdout


def route_names_no_route_that_linux_does_not_tell(tmp_path: Path) -> None:
    said = {**SAID, "agrees": True, "differs": None, "prefix": None, "table": None, "metric": None}
    done, _ = ask(tmp_path, {**DECISION, "linux": said}, "show", "route", "2001:db8::1")
    assert "unicast via 192.0.2.9 dev right" in done.stdout
    assert "table" not in done.stdout


def route_reports_that_linux_could_not_be_asked(tmp_path: Path) -> None:
    done, _ = ask(tmp_path, {**DECISION, "linux": {"agrees": None, "error": "still dumping"}}, "route", "10.1.2.3")
    assert "still dumping" in done.stdout
    assert "Linux agrees" not in done.stdout
