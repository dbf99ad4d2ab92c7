"""Workers that sleep without traffic: they forward what arrives, and table updates do not wait for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.frames import forwarded, ip4, on
from harness.wire import Wire, wait_until
from harness.wired import BUILD, DL3D, Account, Port, WiredForwarder, config_text, host_mac, settled

from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.lab.namespace import End, Lab

DL3GEN = BUILD / "src" / "dl3gen"

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("ab", 1)]
SETTINGS: dict[str, Any] = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b"],
    "neighbours": ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b"],
}


@pytest.fixture(scope="module")
def asleep() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, **SETTINGS) as made:
        yield made


def _worker(dl3d: Forwarder) -> dict[str, Any]:
    worker: dict[str, Any] = dl3d.call("workers")["workers"][0]
    return worker


def _sleeps(dl3d: Forwarder) -> int:
    return int(_worker(dl3d)["counters"]["sleeps"])


def _wait_asleep(dl3d: Forwarder) -> None:
    before = _sleeps(dl3d)
    wait_until(lambda: _sleeps(dl3d) > before, "the worker slept")


def a_worker_that_sleeps_reports_it(asleep: WiredForwarder) -> None:
    _wait_asleep(asleep.dl3d)
    worker = _worker(asleep.dl3d)
    assert worker["idle"] == "sleep"
    assert 0 < worker["asleep_share"] <= 1
    assert worker["counters"]["slept_cycles"] > 0


def frames_that_come_to_a_sleeping_worker_are_forwarded_in_order(asleep: WiredForwarder) -> None:
    _wait_asleep(asleep.dl3d)
    before = asleep.account().received
    frames = [on(0, ip4("10.2.0.1", id=number)) for number in range(100)]
    for frame in frames:
        asleep.wires["a"].send(frame)
    account = asleep.settle(before + len(frames))
    assert account.dropped == 0
    mac = host_mac(1)
    assert [asleep.wires["b"].receive(60.0) for _ in frames] == [forwarded(frame, 1, mac) for frame in frames]


def a_change_of_the_table_reaches_a_sleeping_worker(asleep: WiredForwarder) -> None:
    _wait_asleep(asleep.dl3d)
    for number in range(20):
        route = f"10.3.{number}.0/24 via 10.0.2.2 dev b"
        asleep.dl3d.call("routes.change", changes=[{"op": "add", "route": route}])
    before = asleep.account()
    asleep.wires["a"].send(on(0, ip4("10.3.19.1")))
    assert asleep.settle(before.received + 1).since(before).sent == 1


def a_worker_that_polls_never_sleeps() -> None:
    with WiredForwarder(PORTS, idle="poll", **SETTINGS) as wired:
        loops = int(_worker(wired.dl3d)["counters"]["loops"])
        wait_until(lambda: int(_worker(wired.dl3d)["counters"]["empty_loops"]) > loops + 100_000, "the worker polled")
        assert _sleeps(wired.dl3d) == 0
        assert (_worker(wired.dl3d)["idle"], _worker(wired.dl3d)["woken_by"]) == ("poll", None)


def a_worker_is_woken_by_a_packet_socket(asleep: WiredForwarder) -> None:
    assert _worker(asleep.dl3d)["woken_by"] == "frames"


MEMIF = "net_memif{n},role={role},id={n},socket=@FOLDER@/m,socket-abstract=no"
FORWARDER = {
    "memory": {"hugepages": "never"},
    "ports": [
        {"name": name, "device": MEMIF.format(n=n, role="server"), "mac": f"02:00:00:00:00:0{n + 1}"}
        for n, name in enumerate("ab")
    ],
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b"],
    "neighbours": ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b"],
    "control": {"socket": "@SOCKET@"},
}
GENERATOR = {
    "memory": {"hugepages": "never"},
    "ports": [
        {"name": name, "device": MEMIF.format(n=n, role="client"), "mac": f"02:00:00:00:01:0{n + 1}"}
        for n, name in enumerate("xy")
    ],
    "streams": [
        {"from": "x", "to": "y", "rate": "1 kpps", "frames": 200, "catch_up": 16384, "dst_mac": "02:00:00:00:00:01"}
        | {"src_ip": "10.0.1.2", "dst_ip": "10.2.0.1"}
    ],
    "control": {"socket": "@SOCKET@"},
}


def _maps_memif(dl3d: Forwarder) -> bool:
    maps = Path(f"/proc/{dl3d.process.pid}/maps").read_text(encoding="utf-8")
    return "memif_region" in maps


def _send_from_a_new_peer(dl3d: Forwarder) -> None:
    text = yaml.safe_dump(GENERATOR).replace("@FOLDER@", str(dl3d.folder))
    with Generator(DL3GEN, text) as dl3gen:
        dl3gen.wait_ready()
        wait_until(lambda: all(port["link_up"] for port in dl3d.call("ports")["ports"]), "the peer is connected")
        # A client is connected a moment after its server, and sends nothing before.
        wait_until(lambda: all(port.link_up for port in dl3gen.ports().ports), "dl3gen is connected")
        assert _worker(dl3d)["woken_by"] == "frames"
        dl3gen.send(seconds=10)
        assert dl3gen.finish().streams[0].sent == 200
        wait_until(lambda: dl3gen.results().streams[0].received == 200, "all frames came")


def a_worker_is_woken_by_a_memif_peer_and_by_the_next_one() -> None:
    with Forwarder(DL3D, yaml.safe_dump(FORWARDER)) as dl3d:
        dl3d.wait_ready()
        for _ in range(2):
            _wait_asleep(dl3d)
            _send_from_a_new_peer(dl3d)
            wait_until(lambda: not _maps_memif(dl3d), "the memory of the peer that left is gone")


def a_worker_that_nothing_wakes_is_woken_by_time() -> None:
    ports = [Port(name, device="net_null{index}") for name in "ab"]
    with Forwarder(DL3D, config_text(ports, memory={"hugepages": "never"})) as dl3d:
        dl3d.wait_ready()
        assert _worker(dl3d)["woken_by"] == "time"


def a_worker_is_woken_by_the_interrupts_of_a_tap() -> None:
    with Lab() as lab:
        home = lab.namespace("home", silent=True)
        port = Port("a", device="net_tap0,iface=dl3idle", keys={"addresses": ["10.0.1.1/24"]})
        with Forwarder(DL3D, config_text([port], memory={"hugepages": "never"}), home) as dl3d:
            dl3d.wait_ready()
            assert _worker(dl3d)["woken_by"] == "frames"
            _wait_asleep(dl3d)
            before = Account.of(dl3d.call("drops")).received
            wire = Wire(End(home, "dl3idle", host_mac(0)))
            wire.send(on(0, ip4("10.2.0.1")))
            assert settled(dl3d, before + 1).received == before + 1
            wire.close()
