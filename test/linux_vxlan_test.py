"""Linux's VXLAN devices as workers serve them: a bridge of dl3d, and two Linux hosts with VXLAN of their own.

h0 -- p0 [ br0 + vxlan10 ] p1 -- peer 1     VNI 10: h0 10.0.5.2, br0 10.0.5.1, peers 10.0.5.11 and 10.0.5.12
                         ] p2 -- peer 2     the local end of the router, and those of peers, are on their lo
                         ] p3 -- out        10.0.3.2, routed to VNI 10 by br0
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from harness.network import Host, network
from harness.router import READY_S
from harness.shell import batch, ping
from harness.streams import transfer
from harness.wire import Wire, wait_until
from harness.wired import DL3D, Account, Port, config_text, port_mac, settled

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace

BROADCAST = bytes([255] * 6)
ETHERTYPE = bytes.fromhex("88b5")
INNER_MTU = 1400
MANY = 5
TCP_BYTES = 300_000
LOCAL = {4: "192.0.2.1", 6: "2001:db8:f::1"}
ENDS = {4: ("192.0.2.11", "192.0.2.12"), 6: ("2001:db8:f::11", "2001:db8:f::12")}
LENGTH = {4: 32, 6: 128}
FDB = ("bridge", "fdb", "show")


def _vxlan(name: str, words: str) -> list[str]:
    return [f"link add {name} type vxlan dstport 4789 {words}", f"link set {name} mtu {INNER_MTU} up"]


@dataclass
class Bed:
    """The router and those around it."""

    dl3d: Forwarder
    h0: Host
    out: Host
    peers: list[Host]  # as hosts of VNI 10
    family: int  # of outer packets
    checksum: bool

    @property
    def linux(self) -> Namespace:
        """Where the router is configured."""
        return self.dl3d.taps

    def device(self, name: str, vni: int) -> list[str]:
        """The lines of `ip -batch` that make a VXLAN device of the router, a port of its bridge."""
        words = f"id {vni} local {LOCAL[self.family]} {'udpcsum' if self.checksum else 'noudpcsum'}"
        return [*_vxlan(name, words), f"link set {name} master br0"]

    def flood_to_peers(self, name: str) -> None:
        """Peers get what the device floods."""
        for end in ENDS[self.family]:
            self.linux.run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", name, "dst", end)

    def settle(self) -> None:
        """Wait until workers have what Linux has."""
        wait_until(lambda: not self.dl3d.call("verify")["listed"], "workers had what Linux has")

    def knows(self, mac: str) -> str | None:
        """The port behind which workers have an address."""
        rows = self.dl3d.call("macs", limit=1000)["macs"]
        return next((str(row["port"]) for row in rows if row["mac"] == mac and row["bridge"] == "br0"), None)

    def account(self) -> Account:
        """A closed account."""
        return settled(self.dl3d, 0)

    def forwards(self, n_packets: int, act: Callable[[], object]) -> None:
        """Workers forward at least so many packets, and drop none, while it acts."""
        before = self.account()
        act()
        since = self.account().since(before)
        assert since.sent - since.injected >= n_packets, since
        assert since.drops.keys() <= {"bridge_reserved"}, since

    def meet(self, source: Host, target: Host, family: int) -> None:
        """They reach each other: at first with Linux's help."""
        address = target.address(family)
        what = f"{source.name} reached {target.name} by IPv{family}"
        wait_until(lambda: bool(ping(source.namespace, address, count=1).received), what)


def _configure_peer(peer: Host, index: int, family: int, checksum: bool) -> None:
    here, there = ENDS[family][index], LOCAL[family]
    lines = ["link set lo up", "link set eth0 up"]
    for version in (4, 6):
        lines.append(f"address add {network(version, index + 1, 2)}/{24 if version == 4 else 64} dev eth0")
        lines.append(f"address add {ENDS[version][index]}/{LENGTH[version]} dev lo")
        lines.append(f"route add {LOCAL[version]} via {network(version, index + 1, 1)}")
    lines += _vxlan("vxlan10", f"id 10 local {here} remote {there} {'udpcsum' if checksum else 'noudpcsum'}")
    for version in (4, 6):
        lines.append(f"address add {peer.address(version)}/{24 if version == 4 else 64} dev vxlan10")
        lines.append(f"route add {network(version, 3, 0)}/{24 if version == 4 else 64} via {network(version, 5, 1)}")
    batch(peer.namespace, lines)


def _configure_host(host: Host) -> None:
    lines = [f"link set eth0 mtu {INNER_MTU} up"]
    for version in (4, 6):
        lines.append(f"address add {host.address(version)}/{24 if version == 4 else 64} dev eth0")
        lines.append(f"route add default via {network(version, host.link, 1)}")
    batch(host.namespace, lines)


def _configure_router(bed: Bed) -> None:
    lines = [f"link set p{index} up" for index in range(4)] + ["link set lo up"]
    lines += ["link add br0 up type bridge mcast_snooping 0", "link set p0 master br0"]
    for version in (4, 6):
        for link, name in ((1, "p1"), (2, "p2"), (3, "p3"), (5, "br0")):
            lines.append(f"address add {network(version, link, 1)}/{24 if version == 4 else 64} dev {name}")
        lines.append(f"address add {LOCAL[version]}/{LENGTH[version]} dev lo")
        for index in range(2):
            lines.append(f"route add {ENDS[version][index]} via {network(version, index + 1, 2)}")
    batch(bed.linux, lines + bed.device("vxlan10", 10))
    bed.flood_to_peers("vxlan10")
    shown = ("-d", "link", "show")
    wait_until(lambda: bed.linux.ip(*shown).count("state forwarding") == 2, "both ports forwarded")
    bed.settle()


KINDS = [(4, True), pytest.param((6, True), marks=pytest.mark.long), pytest.param((4, False), marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=KINDS, ids=["IPv4", "IPv6", "without checksums"])
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    family, checksum = request.param
    with Lab() as lab:
        middle = lab.namespace("wires", silent=True)
        h0, out = Host("h0", lab.namespace("h0"), 5, 2), Host("out", lab.namespace("out"), 3, 2)
        peers = [Host(f"peer{i}", lab.namespace(f"peer{i}"), 5, 11 + i, "vxlan10") for i in range(2)]
        for index, host in enumerate((h0, *peers, out)):
            far = End(host.namespace, "eth0", f"02:00:00:00:09:{index:02x}")
            lab.cable(End(middle, f"p{index}", port_mac(index)), far)
        for index, peer in enumerate(peers):
            _configure_peer(peer, index, family, checksum)
        for host in (h0, out):
            _configure_host(host)
        text = config_text([Port(f"p{index}") for index in range(4)])
        with Forwarder(DL3D, text, middle, linux={}) as dl3d:
            dl3d.wait_ready(READY_S)
            made = Bed(dl3d, h0, out, peers, family, checksum)
            _configure_router(made)
            yield made


def _mac(host: Host) -> str:
    return host.namespace.run("cat", f"/sys/class/net/{host.device}/address").strip()


def hosts_reach_each_other_through_vxlan(bed: Bed) -> None:
    for peer in bed.peers:
        for family in (4, 6):
            bed.meet(bed.h0, peer, family)
        wait_until(lambda: bed.knows(_mac(peer)) == "vxlan10", "workers knew it")  # noqa: B023
        for family in (4, 6):
            address = peer.address(family)
            bed.forwards(2 * MANY, partial(ping, bed.h0.namespace, address, count=MANY))
    for family in (4, 6):
        assert transfer(bed.h0, bed.peers[0], family, TCP_BYTES) == TCP_BYTES
        assert transfer(bed.peers[1], bed.h0, family, TCP_BYTES) == TCP_BYTES


def what_is_learnt_from_a_peer_is_behind_it_in_linux_too(bed: Bed) -> None:
    bed.meet(bed.h0, bed.peers[0], 4)
    mac = _mac(bed.peers[0])
    rows = [line for line in bed.linux.run(*FDB).splitlines() if line.startswith(mac)]
    assert rows
    assert all("dev vxlan10" in row for row in rows), rows
    assert any(f"dst {ENDS[bed.family][0]}" in row for row in rows), rows
    assert bed.dl3d.call("verify")["listed"] == []


def packets_are_routed_between_a_port_and_vxlan(bed: Bed) -> None:
    for family in (4, 6):
        bed.meet(bed.out, bed.peers[0], family)
        address = bed.peers[0].address(family)
        bed.forwards(2 * MANY, partial(ping, bed.out.namespace, address, count=MANY))
        assert transfer(bed.out, bed.peers[0], family, TCP_BYTES) == TCP_BYTES


def _frame(number: int, src: bytes) -> bytes:
    return BROADCAST + src + ETHERTYPE + bytes([number]) + bytes(59)


def _numbers(wire: Wire) -> list[int]:
    return [frame[14] for frame in wire.drain() if frame[12:14] == ETHERTYPE]


def floods_reach_all_remote_ends_once_and_none_goes_back(bed: Bed) -> None:
    ends = {"h0": End(bed.h0.namespace, "eth0", ""), **{p.name: End(p.namespace, "vxlan10", "") for p in bed.peers}}
    wires = {name: Wire(end) for name, end in ends.items()}
    found: dict[str, list[int]] = {name: [] for name in wires}

    def is_out(wanted: dict[str, list[int]]) -> bool:
        for name, wire in wires.items():
            found[name] += _numbers(wire)
        return {name: sorted(rows) for name, rows in found.items()} == wanted

    sent = list(range(1, MANY + 1))
    for source, others in (("h0", ("peer0", "peer1")), ("peer0", ("h0",))):
        before = bed.account()
        for number in sent:
            wires[source].send(_frame(number, bytes.fromhex("02000000a0") + source.encode()[-1:]))
        wanted = {name: sent if name in others else [] for name in wires}
        wait_until(partial(is_out, wanted), f"floods of {source} came out once: {found}")
        assert bed.account().since(before).copied >= MANY * len(others)
        assert is_out(wanted), found
        for rows in found.values():
            rows.clear()
    for wire in wires.values():
        wire.close()


def changes_of_the_device_are_followed(bed: Bed) -> None:
    batch(bed.linux, ["link set vxlan10 nomaster"])
    bed.settle()
    assert bed.knows(_mac(bed.peers[0])) is None
    batch(bed.linux, ["link set vxlan10 master br0"])
    wait_until(lambda: "state forwarding" in bed.linux.ip("-d", "link", "show", "vxlan10"), "it forwarded again")
    bed.meet(bed.h0, bed.peers[0], 4)
    batch(bed.linux, ["link del vxlan10", *bed.device("vxlan10", 11)])
    bed.flood_to_peers("vxlan10")
    bed.settle()
    batch(bed.linux, ["link del vxlan10", *bed.device("vxlan10", 10)])
    bed.flood_to_peers("vxlan10")
    bed.linux.run("bridge", "link", "set", "dev", "vxlan10", "neigh_suppress", "on")
    bed.settle()
    bed.meet(bed.h0, bed.peers[1], 4)
    wait_until(lambda: bed.knows(_mac(bed.peers[1])) == "vxlan10", "workers knew it")
    bed.forwards(2 * MANY, partial(ping, bed.h0.namespace, bed.peers[1].address(4), count=MANY))


def devices_that_workers_do_not_serve_are_named(bed: Bed) -> None:
    batch(bed.linux, ["link add vxlan20 up type vxlan external dstport 4800"])

    def is_named() -> bool:
        rows = bed.dl3d.call("unsupported")["unsupported"]
        return any(row["where"] == "vxlan20" and "external" in row["what"] for row in rows)

    wait_until(is_named, "it was named")
    batch(bed.linux, ["link del vxlan20"])
    wait_until(lambda: not is_named(), "it was forgotten")
    bed.meet(bed.h0, bed.peers[0], 4)
