"""Flows in a running dl3d: changes, files, crashes, full disks, reloads, and how flows end."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.frames import IP, UDP, Packet, Raw, forwarded, ip4, ip6, on
from harness.wire import wait_until
from harness.wired import DL3D, Port, WiredForwarder, config_text, host_mac

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("abc", 1)]
SETTINGS: dict[str, Any] = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b"],
    "neighbours": [f"10.0.{i + 1}.2 lladdr {host_mac(i)} dev {port.name}" for i, port in enumerate(PORTS)],
}
FLOW: dict[str, Any] = {"ipv4": 300000, "ipv6": 1000, "timeouts": [1, 300], "file": "@FOLDER@/flows"}
TO_C = {"do": "via", "via": "10.0.3.2", "dev": "c"}
MANY, A_BATCH = 100000, 1000


def _key(dst: str, **changed: Any) -> dict[str, Any]:
    """The key of the packets that ip4() makes."""
    return {"src": "10.0.1.2", "dst": dst, "protocol": "udp", "src_port": 1024, "dst_port": 53} | changed


def _add(dst: str, action: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"op": "add", "action": action} | _key(dst) | more


def _text(ports: list[Port] | None = None, **flow: Any) -> str:
    return config_text(ports or PORTS, flow=FLOW | flow, **SETTINGS)


@dataclass
class Flows:
    """A forwarder with a flow table, and what tests do with it."""

    wired: WiredForwarder

    @property
    def dl3d(self) -> Forwarder:
        """The program."""
        return self.wired.dl3d

    @property
    def file(self) -> Path:
        """The file of flows of its configuration."""
        return self.dl3d.folder / "flows"

    def change(self, *changes: dict[str, Any]) -> None:
        """Apply changes, all of which must be accepted."""
        assert self.dl3d.call("flows.change", changes=changes)["results"] == []

    def found(self, dst: str) -> dict[str, Any] | None:
        """The flow to an address."""
        flow: dict[str, Any] | None = self.dl3d.call("flows.find", **_key(dst))["flow"]
        return flow

    def n(self) -> int:
        """How many IPv4 flows there are."""
        return int(self.dl3d.call("flows")["ipv4"]["flows"])

    def job(self, state: str = "done") -> dict[str, Any]:
        """Wait for the end of the job that runs."""
        wait_until(lambda: self.dl3d.call("flows.job")["state"] not in ("running", "none"), "the job had ended")
        ended = self.dl3d.call("flows.job")
        assert ended["state"] == state, ended
        return ended

    def save(self) -> None:
        """Save all flows."""
        self.dl3d.call("flows.save")
        self.job()

    def fill(self, n: int = MANY) -> None:
        """Add many flows with one action."""
        for first in range(0, n, A_BATCH):
            numbers = range(first, min(first + A_BATCH, n))
            self.change(*({"op": "replace", "action": TO_C} | _key(_host(i)) for i in numbers))

    def reload(self, ports: list[Port] | None = None, **flow: Any) -> None:
        """Reload a file with other keys."""
        text = _text(ports, **flow).replace("@SOCKET@", str(self.dl3d.socket))
        self.dl3d.file.write_text(text.replace("@FOLDER@", str(self.dl3d.folder)))
        self.dl3d.call("reload")

    def crash(self) -> None:
        """Kill the program and start it again."""
        self.dl3d.kill()
        self.dl3d.start_again()
        self.dl3d.wait_ready()

    def out(self, packet: Packet) -> tuple[str, bytes] | None:
        """The port on which a packet is sent, and its frame; None: it is dropped."""
        before = self.wired.account()
        self.wired.wires["a"].send(on(0, packet))
        if not self.wired.settle(before.received + 1).since(before).sent:
            return None
        return self.wired.only_frame()

    def port_of(self, packet: Packet) -> str | None:
        """The port on which a packet is sent."""
        found = self.out(packet)
        return found[0] if found else None


def _host(i: int) -> str:
    return f"11.{i >> 16}.{i >> 8 & 255}.{i & 255}"


@contextlib.contextmanager
def _flows(**flow: Any) -> Iterator[Flows]:
    with WiredForwarder(PORTS, flow=FLOW | flow, **SETTINGS) as wired:
        yield Flows(wired)


@pytest.fixture
def flows() -> Iterator[Flows]:
    with _flows() as made:
        yield made


def a_flow_goes_before_the_route(flows: Flows) -> None:
    packet = ip4("10.2.0.1")
    assert flows.port_of(packet) == "b"
    flows.change(_add("10.2.0.1", TO_C))
    assert flows.out(packet) == ("c", forwarded(on(0, packet), 2))
    assert flows.port_of(ip4("10.2.0.2")) == "b"
    found = flows.found("10.2.0.1")
    assert found is not None
    assert (found["packets"], found["bytes"]) == (1, len(bytes(packet)) + 14)
    flows.change({"op": "replace", "action": {"do": "drop"}} | _key("10.2.0.1"))
    assert flows.port_of(packet) is None
    flows.change({"op": "delete"} | _key("10.2.0.1"))
    assert flows.port_of(packet) == "b"
    assert flows.wired.account().drops == {"flow_dropped": 1}


def an_ipv6_flow_goes_by_an_ipv4_neighbour(flows: Flows) -> None:
    packet = ip6("2001:db8:9::1")
    key = {"src": "2001:db8:1::2", "dst": "2001:db8:9::1", "protocol": 17, "src_port": 1024, "dst_port": 53}
    flows.change({"op": "add", "action": TO_C} | key)
    assert flows.out(packet) == ("c", forwarded(on(0, packet), 2))


def packets_without_a_flow_are_dropped_once_a_reload_says_so(flows: Flows) -> None:
    flows.change(_add("10.2.0.1", TO_C))
    flows.reload(missing="drop")
    assert flows.port_of(ip4("10.2.0.2")) is None
    assert flows.port_of(ip4("10.2.0.1")) == "c"
    assert flows.wired.account().drops == {"flow_missing": 1}
    flows.reload()
    assert flows.port_of(ip4("10.2.0.2")) == "b"


def a_reload_keeps_the_table_and_its_next_hops(flows: Flows) -> None:
    flows.change(_add("10.2.0.1", TO_C, idle_s=300))
    assert flows.port_of(ip4("10.2.0.1")) == "c"
    for i in range(3):
        flows.reload(timeouts=[1, 400 + i])
        found = flows.found("10.2.0.1")
        assert found is not None
        assert (found["idle_s"], found["packets"], found["action"]) == (400 + i, i + 1, TO_C)
        assert flows.port_of(ip4("10.2.0.1")) == "c"
    with pytest.raises(Fault, match=r"needs a restart: flow\.ipv4; nothing was changed"):
        flows.reload(ipv4=5)


def a_port_that_goes_away_and_comes_back_is_used_again(flows: Flows) -> None:
    flows.change(_add("10.2.0.1", TO_C))
    flows.dl3d.call("ports.remove", name="c")
    assert flows.port_of(ip4("10.2.0.1")) is None
    assert flows.wired.account().drops == {"flow_unresolved": 1}
    found = flows.found("10.2.0.1")
    assert found is not None
    assert found["action"] == TO_C
    flows.save()
    flows.change({"op": "delete"} | _key("10.2.0.1"))
    flows.dl3d.call("flows.load")
    job = flows.job()
    assert (job["done"], job["refused"], job["first_refused"]) == (1, 1, 1)
    assert "unknown interface" in job["reason"]


def what_was_saved_is_there_after_a_crash(flows: Flows) -> None:
    flows.change(_add("10.2.0.1", TO_C | {"dscp": 10}, idle_s=300), _add("10.2.0.9", {"do": "drop"}))
    assert flows.port_of(ip4("10.2.0.1")) == "c"
    before = flows.found("10.2.0.1")
    flows.save()
    flows.crash()
    assert flows.job()["done"] == 2
    after = flows.found("10.2.0.1")
    assert before is not None
    assert after is not None
    assert {k: v for k, v in after.items() if k != "idle_for_s"} == {
        k: v for k, v in before.items() if k != "idle_for_s"
    }
    sent = flows.out(ip4("10.2.0.1"))
    assert sent is not None
    assert sent[0] == "c"
    assert sent[1][15] >> 2 == 10
    assert flows.port_of(ip4("10.2.0.9")) is None
    found = flows.found("10.2.0.1")
    assert found is not None
    assert found["packets"] == 2


def _killed_while(flows: Flows, method: str, done: int) -> None:
    """Kill the program while a job runs, after so many flows; the old file stays as it was, or the new one is complete."""
    flows.dl3d.call(method)
    job = flows.dl3d.call("flows.job")
    while job["state"] == "running" and job["done"] < done:
        job = flows.dl3d.call("flows.job")
    flows.crash()
    assert flows.job()["refused"] == 0


def a_crash_while_flows_are_saved_leaves_a_whole_file(flows: Flows) -> None:
    """Three crashes with 100,000 flows each."""
    flows.change(_add("10.2.0.1", TO_C))
    flows.save()
    flows.fill()
    for done in (0, 1, MANY // 2):
        _killed_while(flows, "flows.save", done)
        assert flows.n() in (1, MANY + 1)
        assert flows.port_of(ip4("10.2.0.1")) == "c"
        flows.fill()
    flows.save()
    assert not flows.file.with_suffix(".new").exists()


def a_crash_while_flows_are_loaded_leaves_the_file(flows: Flows) -> None:
    """The file has 100,000 flows; the program is killed while it is checked, and twice while flows are applied."""
    flows.fill()
    flows.save()
    saved = flows.file.read_bytes()
    for done in (0, 1, MANY // 2):
        _killed_while(flows, "flows.load", done)
        assert flows.file.read_bytes() == saved
        assert flows.n() == MANY


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    with _flows(file=str(small_disk / "flows")) as flows:
        flows.change(_add("10.2.0.1", TO_C))
        flows.save()
        saved = (small_disk / "flows").read_bytes()
        flows.fill()
        flows.dl3d.call("flows.save")
        assert flows.job("failed")["reason"] == f"cannot write {small_disk}/flows.new: No space left on device"
        assert [file.name for file in small_disk.iterdir()] == ["flows"]
        assert (small_disk / "flows").read_bytes() == saved
        assert flows.n() == MANY + 1
        assert flows.port_of(ip4("10.2.0.1")) == "c"
        flows.dl3d.call("flows.load")
        assert flows.job()["done"] == 1


def a_full_disk_keeps_no_half_line_of_an_ended_flow(small_disk: Path) -> None:
    """The file gets space again, and then has each flow once. 20,000 flows end."""
    file, n = small_disk / "ended", 20000
    with _flows(ended_file=str(file)) as flows:
        blocker = small_disk / "blocker"
        with contextlib.suppress(OSError), blocker.open("wb", buffering=0) as full:
            while full.write(bytes(1 << 12)):
                pass
        flows.fill(n)
        for first in range(0, n, A_BATCH):
            flows.change(*({"op": "delete"} | _key(_host(i)) for i in range(first, first + A_BATCH)))
        wait_until(lambda: flows.dl3d.call("flows")["ended"]["error"] is not None, "the disk was full")
        blocker.write_bytes(b"")
        os.truncate(blocker, 0)
        wait_until(lambda: file.stat().st_size > 0, "something was written")
        wait_until(lambda: flows.dl3d.call("flows")["ended"]["error"] is not None, "the disk was full again")
        lines = file.read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
        assert flows.dl3d.call("flows")["ended"]["lost"] == 0


@pytest.mark.parametrize("at", [0, 20, 63, 64, 64 + 17, 2 * 64 + 30])
def a_damaged_file_is_one_sentence_and_no_obstacle(flows: Flows, at: int) -> None:
    flows.change(_add("10.2.0.1", TO_C))
    flows.save()
    damaged = bytearray(flows.file.read_bytes())
    damaged[at] ^= 0x41
    flows.file.write_bytes(damaged)
    flows.dl3d.call("flows.change", changes=[_add("10.2.0.2", TO_C)])
    try:
        flows.dl3d.call("flows.load")
        reason = flows.job("failed")["reason"]
    except Fault as refused:
        reason = str(refused)
    assert str(flows.file) in reason
    assert flows.n() == 2
    flows.crash()
    wait_until(lambda: f"flows: {flows.file}" in flows.dl3d.stderr, "the error was in the log")
    assert flows.n() == 0
    assert flows.port_of(ip4("10.2.0.1")) == "b"
    with pytest.raises(Fault, match=r"could be loaded at start|not a file of flows"):
        flows.dl3d.call("flows.save")
    assert flows.file.read_bytes() == damaged


def an_idle_flow_ends_with_its_final_counters(tmp_path: Path) -> None:
    with _flows(ended_file=str(tmp_path / "ended")) as flows:
        flows.change(_add("10.2.0.1", TO_C, idle_s=1), _add("10.2.0.2", {"do": "route"}, ends_s=1))
        for _ in range(5):
            flows.out(ip4("10.2.0.1"))
        wait_until(lambda: len(flows.dl3d.call("flows.ended")["ended"]) == 2, "both had ended")
        ended = {row["dst"]: row for row in flows.dl3d.call("flows.ended")["ended"]}
        idle, fixed = ended["10.2.0.1"], ended["10.2.0.2"]
        assert (idle["reason"], fixed["reason"]) == ("idle", "end")
        assert 1 <= idle["packets"] <= 5
        wait_until(lambda: len((tmp_path / "ended").read_text().splitlines()) == 2, "the file had both")
        rows = [json.loads(line) for line in (tmp_path / "ended").read_text().splitlines()]
        assert {row["dst"]: row["packets"] for row in rows} == {"10.2.0.1": idle["packets"], "10.2.0.2": 0}
        assert flows.dl3d.stop() == 0


def a_deleted_flow_is_in_the_file_when_the_program_stops(tmp_path: Path) -> None:
    with _flows(ended_file=str(tmp_path / "ended")) as flows:
        flows.change(_add("10.2.0.1", TO_C))
        assert flows.port_of(ip4("10.2.0.1")) == "c"
        flows.change({"op": "delete"} | _key("10.2.0.1"))
        assert flows.dl3d.stop() == 0
        (line,) = (tmp_path / "ended").read_text().splitlines()
        assert json.loads(line)["packets"] == 1


def the_port_and_the_protocol_are_part_of_the_key(flows: Flows) -> None:
    flows.change(_add("10.2.0.1", TO_C))
    other = IP(src="10.0.1.2", dst="10.2.0.1") / UDP(sport=1025, dport=53) / Raw(bytes(18))
    assert flows.port_of(other) == "b"
    assert flows.port_of(ip4("10.2.0.1")) == "c"


def a_table_that_is_larger_than_memory_is_refused_by_check(tmp_path: Path) -> None:
    workers = [{"core": core} for core in range(120)]
    file = tmp_path / "f.yaml"
    text = config_text([Port("a", device="net_null0")], flow={"ipv4": 67108863}, workers=workers)
    file.write_text(text.replace("@SOCKET@", str(tmp_path / "s.sock")))
    done = subprocess.run([DL3D, "--check", file], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def a_signal_reloads_the_file_of_ended_flows(tmp_path: Path) -> None:
    """As for rotated logs: the old file was renamed."""
    with _flows(ended_file=str(tmp_path / "ended")) as flows:
        flows.change(_add("10.2.0.1", TO_C), {"op": "delete"} | _key("10.2.0.1"))
        wait_until(lambda: (tmp_path / "ended").stat().st_size > 0, "the flow was in the file")
        (tmp_path / "ended").rename(tmp_path / "ended.1")
        flows.dl3d.process.send_signal(signal.SIGHUP)
        wait_until(lambda: flows.dl3d.call("status")["reloads"] == 1, "it was reloaded")
        flows.change(_add("10.2.0.3", TO_C), {"op": "delete"} | _key("10.2.0.3"))
        wait_until(lambda: (tmp_path / "ended").stat().st_size > 0, "the new file had a flow")
        assert json.loads((tmp_path / "ended").read_text())["dst"] == "10.2.0.3"
        assert json.loads((tmp_path / "ended.1").read_text())["dst"] == "10.2.0.1"
