"""Measures a router without static neighbours: dl3gen answers ARP and ND, and resolves the router's MACs."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN, PATIENCE_S
from harness.wire import Wire, wait_until
from scapy.layers.inet6 import ICMPv6ND_NS, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether

from dl3.control.generator import Results
from dl3.lab.generator import Generator
from dl3.lab.namespace import End, Lab, Namespace
from dl3.lab.program import Surroundings
from dl3.model.fault import Fault

SIDES = ("left", "right")
DEVICES = {
    "af_packet": "net_af_packet{i},iface={side},framecnt=4096",
    "af_xdp": "net_af_xdp{i},iface={side},force_copy=1",
}
MACS = ("02:00:00:00:00:11", "02:00:00:00:00:12")
ROUTER_MACS = ("02:00:00:00:01:fe", "02:00:00:00:02:fe")
FRAMES = 3000


def _port(device: str, i: int, **keys: Any) -> dict[str, Any]:
    """Port i: hosts .2 of two networks with the router at .254."""
    return {
        "name": SIDES[i],
        "device": DEVICES[device].format(i=i, side=SIDES[i]),
        "addresses": [f"10.0.{i}.2/24", f"2001:db8:{i}::2/64"],
        "gateway": [f"10.0.{i}.254", f"2001:db8:{i}::fe"],
    } | keys


def _stream(family: int, **keys: Any) -> dict[str, Any]:
    """A stream from left to twenty hosts on the right."""
    first = "10.0.1.100" if family == 4 else "2001:db8:1::100"
    own = "10.0.0.2" if family == 4 else "2001:db8:0::2"
    return {
        "name": f"ipv{family}",
        "from": "left",
        "to": "right",
        "dst_mac": "auto",
        "src_ip": own,
        "dst_ip": {"first": first, "count": 20},
        "rate": "2 kpps",
        "frames": FRAMES,
        "catch_up": 16384,
    } | keys


def _balances(results: Results) -> bool:
    """Each frame received is counted in exactly one place. The router may ask for a neighbour while results are read."""
    for port in results.ports:
        streams = [stream for stream in results.streams if stream.to_port == port.name]
        named = sum(s.received + s.duplicated + s.corrupted + s.too_old for s in streams)
        if port.rx_packets != named + port.foreign + port.stale + port.misdirected + port.neighbours:
            return False
    return True


class Bed:
    """dl3gen with both ports connected to a Linux router, all in separate namespaces."""

    def __init__(self, device: str, **keys: Any) -> None:
        self.lab = Lab()
        try:
            self.inside = self.lab.namespace("gen", silent=True)
            self.router = self.lab.namespace("router")
            self._build()
            config = {
                "ports": [_port(device, i, **keys) for i in range(2)],
                "workers": [{"core": CORES[-1]}],
                "memory": {"hugepages": "never"},
                "control": {"socket": "@SOCKET@"},
            }
            self.dl3gen = Generator(DL3GEN, yaml.safe_dump(config), Surroundings(namespace=self.inside))
            self.dl3gen.wait_ready()
        except BaseException:
            self.lab.close()
            raise

    def _build(self) -> None:
        for i, side in enumerate(SIDES):
            self.lab.cable(End(self.inside, side, MACS[i]), End(self.router, side, ROUTER_MACS[i]))
            self.router.ip("address", "add", f"10.0.{i}.254/24", "dev", side)
            self.router.ip("address", "add", f"2001:db8:{i}::fe/64", "dev", side)
        for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            self.router.set_sysctl(key, "1")
        # However late dl3gen answers, no frame that waits for it is dropped.
        for where in (f"net.ipv{family}.neigh.{side}" for family in (4, 6) for side in SIDES):
            self.router.set_sysctl(f"{where}.unres_qlen_bytes", str(1 << 24))
            self.router.set_sysctl(f"{where}.mcast_solicit", str(int(PATIENCE_S)))

    def run(self, *streams: dict[str, Any]) -> Results:
        """Send the streams and return the packet accounting."""
        self.dl3gen.send(streams=list(streams))
        return self.finish()

    def finish(self, most_lost: int = 0) -> Results:
        """Wait until all frames have come back, but for so many, and the accounting balances; then return it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            results = self.dl3gen.results()
            lost = sum(each.lost for each in results.streams)
            if results.state == "done" and lost <= most_lost and _balances(results):
                return results
            assert time.monotonic() < deadline, results
            time.sleep(0.01)

    def neighbours(self, side: str) -> dict[str, Any]:
        """The reply of the method `neighbours` for one port."""
        return next(port for port in self.dl3gen.call("neighbours")["ports"] if port["port"] == side)

    def close(self) -> None:
        """Stop dl3gen, remove all namespaces."""
        try:
            status = self.dl3gen.stop()
            assert status == 0, f"dl3gen ended with status {status}: {self.dl3gen.stderr}"
        finally:
            self.dl3gen.close()
            self.lab.close()


@pytest.fixture(params=DEVICES)
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    made = Bed(request.param)
    yield made
    made.close()


@pytest.fixture
def plain() -> Iterator[Bed]:
    made = Bed("af_packet")
    yield made
    made.close()


def _neighbour_macs(router: Namespace) -> set[str]:
    return set(re.findall(r"lladdr (\S+)", router.ip("neighbour", "show", "dev", "right")))


def a_router_without_static_neighbours_forwards_both_families(bed: Bed) -> None:
    results = bed.run(_stream(4), _stream(6))
    for reported in results.streams:
        assert (reported.sent, reported.lost, reported.corrupted) == (FRAMES, 0, 0), reported
    assert _neighbour_macs(bed.router) == {MACS[1]}
    right = next(port for port in results.ports if port.name == "right")
    assert right.answered >= 40
    assert {hop["mac"] for hop in bed.neighbours("left")["next_hops"]} == {ROUTER_MACS[0]}


def hosts_behind_a_router_of_its_own_are_reached_through_its_addresses(plain: Bed) -> None:
    plain.router.ip("route", "add", "198.19.0.0/16", "via", "10.0.1.2")
    plain.router.ip("route", "add", "2001:2:0:2::/64", "via", "2001:db8:1::2")
    far = {4: ("198.18.0.1", "198.19.0.1"), 6: ("2001:2:0:1::1", "2001:2:0:2::1")}
    for family, (src, dst) in far.items():
        (reported,) = plain.run(_stream(family, src_ip=src, dst_ip={"first": dst, "count": 1000})).streams
        assert (reported.sent, reported.lost) == (FRAMES, 0)


def neighbours_that_are_forgotten_in_the_middle_are_found_again(plain: Bed) -> None:
    plain.dl3gen.send(streams=[_stream(4), _stream(6)])
    for _ in range(5):
        before = plain.dl3gen.results()
        plain.router.ip("neighbour", "flush", "dev", "right")
        wait_until(
            lambda before=before: all(  # type: ignore[misc]
                now.received > then.received + 20 or now.sent == FRAMES
                for now, then in zip(plain.dl3gen.results().streams, before.streams, strict=True)
            ),
            "frames arrived after the neighbours were forgotten",
        )
    plain.finish(most_lost=FRAMES // 10)


def malformed_and_strange_questions_are_counted_and_ignored(plain: Bed) -> None:
    wire = Wire(End(plain.router, "left", ROUTER_MACS[0]))
    try:
        head = Ether(src="02:00:00:00:01:77", dst="ff:ff:ff:ff:ff:ff")
        asker: dict[str, Any] = {"hwsrc": "02:00:00:00:01:77", "psrc": "10.0.0.77"}
        through_a_router = IPv6(src="2001:db8:0::77", dst="ff02::1:ff00:2", hlim=64)
        wire.send(bytes(head / Dot1Q(vlan=7, prio=3) / ARP(pdst="10.0.0.2", **asker)))
        wire.send(bytes(head / ARP(op=9, pdst="10.0.0.2", **asker)))
        wire.send(bytes(head / through_a_router / ICMPv6ND_NS(tgt="2001:db8::2")))
        wire.send(bytes(head / ARP(pdst="10.0.0.99", **asker)))
        wait_until(lambda: plain.neighbours("left")["malformed"] >= 2, "both malformed ones were counted")
        wait_until(lambda: plain.neighbours("left")["answered"] >= 1, "the question with a tag was answered")
        answers = [Ether(frame) for frame in wire.drain() if frame[6:12] == bytes.fromhex(MACS[0].replace(":", ""))]
    finally:
        wire.close()
    tagged = [frame for frame in answers if ARP in frame and frame[ARP].pdst == "10.0.0.77"]
    assert len(tagged) == 1
    assert (tagged[0][ARP].hwsrc, tagged[0][ARP].psrc, tagged[0].dst) == (MACS[0], "10.0.0.2", "02:00:00:00:01:77")
    assert plain.neighbours("left")["malformed"] == 2


def a_gateway_that_does_not_answer_is_named(plain: Bed) -> None:
    plain.router.ip("address", "del", "10.0.0.254/24", "dev", "left")
    with pytest.raises(Fault, match=r"stream ipv4: 10\.0\.0\.254 on port left did not reply to ARP or ND within 3 s"):
        plain.run(_stream(4))
    (reported,) = plain.run(_stream(6, frames=100)).streams
    assert reported.lost == 0
