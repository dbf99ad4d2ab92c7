"""Changes under traffic: reload by signal and by method, and route batches; all or nothing, without loss."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.frames import Packet, forwarded, ip4, ip6, on
from harness.traffic import Traffic
from harness.wire import wait_until
from harness.wired import DL3D, JUMBO_OPTIONS, Port, WiredForwarder, config_text, host_mac

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("abc", 1)]
NEIGHBOURS = ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b", "10.0.3.2 lladdr 02:00:00:00:01:03 dev c"]
ROUTES = ["10.2.0.0/16 via 10.0.2.2 dev b", "2001:db8:22::/48 via 2001:db8:2::2 dev b"]
SETTINGS: dict[str, Any] = {
    "routes": ROUTES,
    "neighbours": [*NEIGHBOURS, "2001:db8:2::2 lladdr 02:00:00:00:01:02 dev b"],
}


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, **SETTINGS) as made:
        yield made


def _write(wired: WiredForwarder, **changed: Any) -> None:
    text = config_text(changed.pop("ports", PORTS), **(SETTINGS | changed))
    wired.dl3d.file.write_text(text.replace("@SOCKET@", str(wired.dl3d.socket)))


def _n_reloads(wired: WiredForwarder) -> int:
    return int(wired.dl3d.call("status")["reloads"])


def _wait_reloads(wired: WiredForwarder, n: int) -> None:
    wait_until(lambda: _n_reloads(wired) == n, f"{n} reloads were counted")


def _out(wired: WiredForwarder, packet: Packet) -> tuple[str, bytes] | None:
    """The port on which a packet is sent, and its frame."""
    before = wired.account()
    wired.wires["a"].send(on(0, packet))
    if not wired.settle(before.received + 1).since(before).sent:
        return None
    found: list[tuple[str, bytes]] = []

    def is_out() -> bool:
        found.extend((name, frame) for name, wire in wired.wires.items() for frame in wire.drain())
        return bool(found)

    wait_until(is_out, "the packet came out")
    (only,) = found
    return only


def _goes_to(wired: WiredForwarder, index: int) -> bool:
    packet = ip4("10.2.0.1")
    return _out(wired, packet) == (PORTS[index].name, forwarded(on(0, packet), index))


@pytest.mark.parametrize("way", ["method", "signal"])
def a_reload_loses_no_packet(wired: WiredForwarder, way: str) -> None:
    sinks = {name: wired.wires[name] for name in "bc"}
    with Traffic(wired.wires["a"], on(0, ip4("10.2.0.1")), sinks) as traffic:
        for i in range(8):
            hop = "10.0.3.2 dev c" if i % 2 == 0 else "10.0.2.2 dev b"
            _write(wired, routes=[f"10.2.0.0/16 via {hop}", f"10.9.{i}.0/24 via 10.0.3.2 dev c"])
            if way == "method":
                wired.dl3d.call("reload")
            else:
                wired.dl3d.process.send_signal(signal.SIGHUP)
            _wait_reloads(wired, i + 1)
            traffic.go_on(100)
    assert traffic.missing == set()
    assert all(traffic.came_out.values()), "both ports had their turn"
    assert sum(map(len, traffic.came_out.values())) == traffic.n_sent
    assert wired.settle(traffic.n_sent).drops == {}


def an_address_of_ours_is_no_source_until_a_reload_takes_it_away(wired: WiredForwarder) -> None:
    packet = ip4("10.2.0.1", src="10.77.0.1")
    leaves = ("b", forwarded(on(0, packet), 1))
    assert _out(wired, packet) == leaves
    _write(wired, ports=[*PORTS[:2], Port("c", keys={"addresses": ["10.0.3.1/24", "10.77.0.1/32"]})])
    wired.dl3d.call("reload")
    assert _out(wired, packet) is None
    assert wired.account().drops == {"martian_source": 1}
    _write(wired)
    wired.dl3d.call("reload")
    assert _out(wired, packet) == leaves


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("host_bits", {"routes": ["10.2.0.1/16 via 10.0.3.2 dev c"]}, "host bits"),
    ("unknown_port", {"routes": ["10.2.0.0/16 via 10.0.3.2 dev x"]}, '"x"'),
    ("unknown_key", {"colour": "red"}, "unknown key"),
    ("missing_file", {"route_files": ["/nowhere/routes"]}, "/nowhere/routes"),
]
RESTART: list[tuple[str, dict[str, Any], str]] = [
    ("burst", {"burst": 32}, "burst"),
    ("workers", {"workers": [{"core": 0}]}, "workers"),
    ("device", {"ports": [*PORTS[:2], Port("c", device="net_null9")]}, "ports[2].device"),
    ("descriptors", {"ports": [*PORTS[:2], Port("c", keys={"rx_descriptors": 512})]}, "ports[2].rx_descriptors"),
]


@pytest.mark.parametrize(("changed", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def an_invalid_file_changes_nothing(wired: WiredForwarder, changed: dict[str, Any], words: str) -> None:
    routes = wired.dl3d.call("routes", family=4)
    _write(wired, **changed)
    with pytest.raises(Fault) as error:
        wired.dl3d.call("reload")
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert wired.dl3d.call("routes", family=4) == routes
    assert _n_reloads(wired) == 0
    assert _goes_to(wired, 1)


@pytest.mark.parametrize(("changed", "key"), [row[1:] for row in RESTART], ids=[row[0] for row in RESTART])
def what_needs_a_restart_is_refused_by_name(wired: WiredForwarder, changed: dict[str, Any], key: str) -> None:
    _write(wired, **(changed | {"routes": ["10.2.0.0/16 via 10.0.3.2 dev c"]}))
    with pytest.raises(Fault) as error:
        wired.dl3d.call("reload")
    assert f"needs a restart: {key}" in str(error.value)
    assert _goes_to(wired, 1)


def an_invalid_file_on_a_signal_is_reported_in_the_log(wired: WiredForwarder) -> None:
    wired.dl3d.file.write_text("ports: 5\n")
    wired.dl3d.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "ports" in wired.dl3d.stderr, "the error was in the log")
    assert _goes_to(wired, 1)


def a_signal_while_it_starts_reads_the_file_again(tmp_path: Path) -> None:
    pipe = tmp_path / "routes"
    os.mkfifo(pipe)
    text = config_text([Port("a", device="net_null0,no-rx=1")], route_files=[str(pipe)], memory={"hugepages": "never"})
    with Forwarder(DL3D, text) as dl3d:
        with pipe.open("w") as first:  # returns once it reads
            dl3d.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
            first.write("10.0.0.0/8 dev a\n")
            pipe.unlink()
            pipe.write_text("11.0.0.0/8 dev a\n")
        dl3d.wait_ready()
        wait_until(lambda: dl3d.call("status")["reloads"] == 1, "it had read the file again")
        assert [route["prefix"] for route in dl3d.call("routes")["routes"]] == ["11.0.0.0/8"]


def a_pipe_that_nobody_writes_into_keeps_no_reload_waiting(wired: WiredForwarder, tmp_path: Path) -> None:
    pipe = tmp_path / "routes"
    os.mkfifo(pipe)
    _write(wired, route_files=[str(pipe)])
    with pytest.raises(Fault, match=r"routes: cannot read the file while the program runs: not a regular file"):
        wired.dl3d.call("reload")
    assert _goes_to(wired, 1)


def a_neighbour_gets_a_new_mac(wired: WiredForwarder) -> None:
    _write(wired, neighbours=["10.0.2.2 lladdr 02:00:00:00:09:09 dev b"], routes=ROUTES[:1])
    wired.dl3d.call("reload")
    packet = ip4("10.2.0.1")
    assert _out(wired, packet) == ("b", forwarded(on(0, packet), 1, dst_mac="02:00:00:00:09:09"))


def an_mtu_changes_while_running(wired: WiredForwarder) -> None:
    long_packet = ip4("10.2.0.1", payload=1300, flags="DF")
    assert _out(wired, long_packet)
    _write(wired, ports=[PORTS[0], Port("b", keys=PORTS[1].keys | {"mtu": 1300}), PORTS[2]])
    wired.dl3d.call("reload")
    assert _out(wired, long_packet) is None or wired.account().drops == {"mtu_exceeded": 1}
    assert wired.account().drops == {"mtu_exceeded": 1}


def the_check_of_ip6_sources_changes_while_running(wired: WiredForwarder) -> None:
    ways = ["2001:db8:a::/48 via fe80::2 dev a", "2001:db8:b::/48 via 2001:db8:2::2 dev b", SETTINGS["routes"][1]]
    neighbours = [*SETTINGS["neighbours"], f"fe80::2 lladdr {host_mac(0)} dev a"]

    def passing() -> str:
        sources = {net: ip6("2001:db8:22::1", src=f"2001:db8:{net}::7") for net in "abc"}
        return "".join(net for net, packet in sources.items() if _out(wired, packet))

    for rpf6, passes in (("off", "abc"), ("strict", "a"), ("loose", "ab"), ("off", "abc")):
        ports = [Port("a", keys=PORTS[0].keys | {"rpf6": rpf6}), *PORTS[1:]]
        _write(wired, ports=ports, routes=ways, neighbours=neighbours)
        wired.dl3d.call("reload")
        assert passing() == passes
    assert wired.account().drops == {"rpf_failed": 3}


def an_mtu_whose_frames_the_device_would_cut_is_refused(wired: WiredForwarder) -> None:
    _write(wired, ports=[PORTS[0], Port("b", keys=PORTS[1].keys | {"mtu": 2000}), PORTS[2]])
    with pytest.raises(
        Fault, match=r"ports\[1\] \(b\): .* mtu 2000 .* slots of 1982 bytes .*; restart with larger slots"
    ):
        wired.dl3d.call("reload")
    assert _goes_to(wired, 1)


def an_mtu_rises_again_and_so_does_that_of_the_interface_below() -> None:
    def ports(mtu: int) -> list[Port]:
        device = "net_af_packet{index},iface={name}," + JUMBO_OPTIONS
        wide = [Port(port.name, mtu=9000, device=device, keys=dict(port.keys)) for port in PORTS]
        wide[1].keys["mtu"] = mtu
        return wide

    long_packet = ip4("10.2.0.1", payload=8900, flags="DF")
    with WiredForwarder(ports(1280), **SETTINGS) as wired:
        for mtu, port in ((1280, None), (1500, None), (9000, "b"), (1280, None), (9000, "b")):
            _write(wired, ports=ports(mtu))
            wired.dl3d.call("reload")
            out = _out(wired, long_packet)
            assert (out and out[0]) == port, mtu
        assert wired.account().drops == {"mtu_exceeded": 3}


def _change(wired: WiredForwarder, *changes: tuple[str, str]) -> None:
    wired.dl3d.call("routes.change", changes=[{"op": op, "route": route} for op, route in changes])


def a_batch_of_changes_takes_effect(wired: WiredForwarder) -> None:
    _change(wired, ("replace", "10.2.0.0/16 via 10.0.3.2 dev c"), ("add", "10.9.0.0/16 via 10.0.2.2 dev b"))
    assert _goes_to(wired, 2)
    assert _out(wired, ip4("10.9.0.1")) == ("b", forwarded(on(0, ip4("10.9.0.1")), 1))
    _change(wired, ("delete", "10.9.0.0/16 via 10.0.2.2 dev b"))
    assert _out(wired, ip4("10.9.0.1")) is None
    assert wired.account().drops == {"no_route": 1}
    _change(wired, ("replace", "2001:db8:22::/48 via 2001:db8:2::2 dev b"))
    assert _out(wired, ip6("2001:db8:22::1")) == ("b", forwarded(on(0, ip6("2001:db8:22::1")), 1))


FAILING = [
    ("add", "10.2.0.0/16 via 10.0.3.2 dev c"),
    ("delete", "10.77.0.0/16 via 10.0.3.2 dev c"),
    ("add", "10.2.0.1/16 via 10.0.3.2 dev c"),
    ("add", "10.78.0.0/16 via 10.0.3.2 dev x"),
    ("burn", "10.78.0.0/16 via 10.0.3.2 dev c"),
]


@pytest.mark.parametrize("failing", FAILING, ids=lambda change: "_".join(change).replace("/", "-"))
def a_batch_with_one_mistake_changes_nothing(wired: WiredForwarder, failing: tuple[str, str]) -> None:
    routes = wired.dl3d.call("routes", family=4)
    good = [("add", f"10.9.{i}.0/24 via 10.0.3.2 dev c") for i in range(50)]
    with pytest.raises(Fault) as error:
        _change(wired, ("replace", "10.2.0.0/17 via 10.0.3.2 dev c"), *good, failing)
    assert "changes[51]" in str(error.value)
    assert wired.dl3d.call("routes", family=4) == routes
    assert _goes_to(wired, 1)


def a_reload_forgets_changes(wired: WiredForwarder) -> None:
    _change(wired, ("replace", "10.2.0.0/16 via 10.0.3.2 dev c"))
    wired.dl3d.call("reload")
    assert _goes_to(wired, 1)
    assert host_mac(1) in str(wired.dl3d.call("nexthops"))
