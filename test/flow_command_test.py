"""Flows of a running dl3d, as the command changes, shows, loads and saves them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Port, config_text

from dl3.lab.forwarder import Forwarder
from dl3.model.flow_file import read_flow_file
from dl3.model.flow_records import saved_flows
from dl3.model.flow_text import action_text, key_text

PORTS = [
    Port(name, device=f"net_ring{i}", keys={"mac": f"02:00:00:00:00:0{i + 1}", "addresses": [f"10.0.{i}.1/24"]})
    for i, name in enumerate(("east", "west"))
]
FLOW = {"ipv4": 200_000, "ipv6": 1000, "timeouts": [1, 300], "file": "@FOLDER@/flows"}
KEY = ("10.0.0.1", "10.1.0.1", "udp", "5000", "53")
TO_WEST = ("via", "10.0.1.2", "dev", "west", "dscp", "46")


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    with Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"}, flow=FLOW)) as made:
        yield made


@pytest.fixture(autouse=True)
def emptied(dl3d: Forwarder) -> Iterator[None]:
    """Each test leaves no flows."""
    yield
    if _n(dl3d) == 0:
        return
    file = dl3d.folder / "all"
    assert _dl3(dl3d, "flow", "save", str(file)).returncode == 0
    assert _dl3(dl3d, "flow", "load", "--delete", str(file)).returncode == 0
    assert _n(dl3d) == 0


def _dl3(dl3d: Forwarder, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(TOP / "bin" / "dl3"), *words, "--socket", str(dl3d.socket)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def _said(dl3d: Forwarder, *words: str) -> str:
    done = _dl3(dl3d, *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def _refused(dl3d: Forwarder, *words: str) -> str:
    done = _dl3(dl3d, *words)
    assert done.returncode in (1, 2), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def _n(dl3d: Forwarder) -> int:
    return int(dl3d.call("flows")["ipv4"]["flows"]) + int(dl3d.call("flows")["ipv6"]["flows"])


def flows_are_added_changed_found_and_deleted(dl3d: Forwarder) -> None:
    assert _said(dl3d, "flow", "add", *KEY, *TO_WEST, "idle", "300") == "added: 1 flow\n"
    assert "via 10.0.1.2 dev west dscp 46" in _said(dl3d, "flow", "find", *KEY)
    assert "exists already" in _refused(dl3d, "flow", "add", *KEY, "drop")
    assert _said(dl3d, "flow", "change", *KEY, "punt", "subscriber", "7") == "changed: 1 flow\n"
    flow = json.loads(_said(dl3d, "flow", "find", *KEY, "--json"))["flow"]
    assert flow["action"] == {"do": "punt", "subscriber": 7}
    assert "idle_s" not in flow
    assert _said(dl3d, "flow", "delete", *KEY) == "deleted: 1 flow\n"
    assert "no such flow" in _refused(dl3d, "flow", "find", *KEY)
    assert "no such flow" in _refused(dl3d, "flow", "delete", *KEY)


@pytest.mark.parametrize(
    "key",
    [
        ("10.0.0.1", "10.1.0.1", "icmp", "7"),
        ("10.0.0.1", "10.1.0.1", "gre"),
        ("10.0.0.1", "10.1.0.1", "103"),
        ("2001:db8::1", "2001:db8::2", "icmpv6", "7"),
        ("2001:db8::1", "2001:db8::2", "sctp", "1", "65535"),
    ],
)
def keys_of_all_kinds_are_understood(dl3d: Forwarder, key: tuple[str, ...]) -> None:
    _said(dl3d, "flow", "add", *key, "drop", "ends", "3600")
    assert _said(dl3d, "flow", "list").splitlines()[1].split()[:3] == [*key[:3]]
    _said(dl3d, "flow", "delete", *key)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("drop", "idle", "7"), "expected one of the timeouts"),
        (("dev", "north"), "unknown interface"),
        (("vrf", "red", "drop"), "red"),
        (("via", "10.0.1.1", "dev", "west"), "the router itself"),
    ],
)
def what_dl3d_refuses_is_one_sentence(dl3d: Forwarder, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in _refused(dl3d, "flow", "add", *KEY, *words)
    assert _n(dl3d) == 0


@pytest.mark.long
def text_is_imported_loaded_and_saved_again(dl3d: Forwarder, tmp_path: Path) -> None:
    lines = [f"10.0.{n // 250}.{n % 250 + 1} 10.1.0.1 tcp {n} 443 {' '.join(TO_WEST)}" for n in range(5000)]
    lines += ["2001:db8::1 2001:db8::2 udp 1 2 route mirror east", "10.0.0.1 10.1.0.1 udp 5000 53 drop"]
    (tmp_path / "text").write_text("\n".join(lines))
    _dl3(dl3d, "flow", "add", *KEY, "route")
    made = subprocess.run([TOP / "bin" / "dl3", "flow", "import", "text", "-o", "made"], cwd=tmp_path, check=False)
    assert made.returncode == 0
    loaded = _dl3(dl3d, "flow", "load", "made", cwd=tmp_path)
    assert loaded.stdout.startswith("loaded: 5,002 flows in "), loaded
    assert _n(dl3d) == 5002
    assert _said(dl3d, "flow", "save", str(tmp_path / "saved")).startswith("saved: 5,002 flows in ")
    found = saved_flows(read_flow_file(tmp_path / "saved"), 0, 6000)
    assert sorted(f"{key_text(flow.key)} {action_text(flow.action)}" for flow in found) == sorted(lines)
    page = json.loads(_said(dl3d, "flow", "list", "--limit", "3000", "--json"))
    assert len(page["flows"]) == 3000
    rest = json.loads(_said(dl3d, "flow", "list", "--limit", "3000", "--json", "--after", str(page["next"])))
    keys = {
        json.dumps({name: flow[name] for name in ("src", "protocol", "src_port")})
        for flow in page["flows"] + rest["flows"]
    }
    assert (len(keys), rest["next"]) == (5002, None)


def flows_of_the_white_paper_are_loaded(dl3d: Forwarder, tmp_path: Path) -> None:
    options = ("--flows", "70000", "--to-101", "via 10.0.0.2 dev east", "--to-201", "drop", "-o", "paper")
    made = subprocess.run([TOP / "bin" / "dl3", "flow", "example", "white-paper", *options], cwd=tmp_path, check=False)
    assert made.returncode == 0
    assert _dl3(dl3d, "flow", "load", "paper", cwd=tmp_path).stdout.startswith("loaded: 140,000 flows in ")
    assert "drop" in _said(dl3d, "flow", "find", "100.10.0.1", "201.1.17.111", "udp", "11", "101")
    assert "no such flow" in _refused(dl3d, "flow", "find", "100.10.0.1", "201.1.17.112", "udp", "11", "101")


def the_file_of_the_configuration_is_the_default(dl3d: Forwarder) -> None:
    _said(dl3d, "flow", "add", *KEY, "drop")
    assert "saved: 1 flow in" in _said(dl3d, "flow", "save")
    assert f"{dl3d.folder / 'flows'}: 1 flow, saved" in _said(
        dl3d, "flow", "list", "--file", str(dl3d.folder / "flows")
    )
    assert "deleted: 1 flow in" in _said(dl3d, "flow", "load", "--delete")


def a_file_that_cannot_be_loaded_is_one_sentence(dl3d: Forwarder, tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(bytes(128))
    assert "not a file of flows" in _refused(dl3d, "flow", "load", str(tmp_path / "none"))
    missing = _refused(dl3d, "flow", "load", str(tmp_path / "missing"))
    assert "No such file" in missing
    assert "not a file of flows" in _refused(dl3d, "flow", "save", str(tmp_path / "none"))


def ended_flows_are_watched(dl3d: Forwarder) -> None:
    before = dl3d.call("flows")["ended"]["last"]
    _said(dl3d, "flow", "add", *KEY, "drop", "idle", "1")
    _said(dl3d, "flow", "add", "10.0.0.1", "10.1.0.2", "icmp", "9", "drop")
    _said(dl3d, "flow", "delete", "10.0.0.1", "10.1.0.2", "icmp", "9")
    wait_until(lambda: dl3d.call("flows")["ended"]["last"] == before + 2, "both flows have ended")
    lines = _said(dl3d, "flow", "watch", "--after", str(before), "--once").splitlines()
    assert sorted(line.partition(" ")[2] for line in lines) == [
        "deleted: 10.0.0.1 10.1.0.2 icmp 9, 0 packets, 0 bytes",
        f"idle: {' '.join(KEY)}, 0 packets, 0 bytes",
    ]
    assert _said(dl3d, "flow", "watch", "--once") == ""


def the_table_is_shown(dl3d: Forwarder) -> None:
    _said(dl3d, "flow", "add", *KEY, "drop")
    rows = [line.split() for line in _said(dl3d, "show", "flows").splitlines()]
    assert ["IPv4", "1", "200,000", "0.0%"] in [row[:4] for row in rows]
    assert ["idle", "timeouts", "1", "s,", "300", "s"] in rows
    assert json.loads(_said(dl3d, "show", "flows", "--json"))["ipv6"]["max"] == 1000


def a_forwarder_without_a_table_says_so() -> None:
    with Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"})) as without:
        assert "flow" in _refused(without, "show", "flows")
        assert "flow" in _refused(without, "flow", "add", *KEY, "drop")
