"""Tunnel devices of Linux, byte for byte as the kernel sends and receives them. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      the same frames go in, once to the kernel and once to dl3d's workers; all remote ends of
                                  tunnels are behind h1
"""

import contextlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from harness.frames import IP, UDP, IPv6, Packet, Raw
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch
from harness.wire import Wire, wait_until
from scapy.layers.inet6 import IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE

from dl3.lab.namespace import End, Lab

DEVICE = "net_pcap{index},iface={name}"
HOST_MAC = "02:00:00:01:{:02x}:02"
HOSTS = [{4: f"10.1.{side}.2", 6: f"2001:db8:1:{side}::2"} for side in range(2)]
OWN = [{4: f"10.1.{side}.1", 6: f"2001:db8:1:{side}::1"} for side in range(2)]
MARK = b"the mark"
MODULES = ("ip_gre", "ipip", "sit", "ip6_gre", "ip6_tunnel", "fou", "fou6")
FOU4, FOU6, GRE_IN_UDP = 5544, 5566, 5547


@dataclass(frozen=True)
class Device:
    """A tunnel device, and what its packets are like."""

    name: str
    words: str
    outer: int = 4
    inner: tuple[int, ...] = (4, 6)
    gre: bool = False
    out_key: int = -1
    in_key: int = -1
    checksum: bool = False
    port: int = 0  # UDP, on which the router receives it

    @property
    def number(self) -> int:
        """Each has networks of its own."""
        return list(DEVICES).index(self.name) + 1

    def ends(self) -> tuple[str, str]:
        """Its local and its remote address."""
        here = OWN[1][self.outer]
        return here, f"192.0.2.{self.number}" if self.outer == 4 else f"2001:db8:2::{self.number:x}"

    def far(self, family: int) -> str:
        """A host behind the other end."""
        return f"10.60.{self.number}.9" if family == 4 else f"2001:db8:60:{self.number:x}::9"

    def lines(self) -> Iterator[str]:
        """Commands that make it."""
        local, remote = self.ends()
        yield f"link add {self.name} type {self.words} local {local} remote {remote}"
        yield f"link set {self.name} up"
        for family in self.inner:
            yield f"route add {self.far(family)}/{32 if family == 4 else 128} dev {self.name}"

    def received(self, inner: Packet, tos: int = 0, **gre: Any) -> Packet:
        """A packet of the other end with this one in it."""
        here, there = self.ends()
        packet = inner
        if self.gre:
            key = {"key_present": 1, "key": self.in_key} if self.in_key >= 0 else {}
            fields: dict[str, Any] = {"chksum_present": int(self.checksum)} | key | gre
            packet = GRE(proto=0x86DD if IPv6 in inner else 0x0800, **fields) / packet
        if self.port:
            packet = UDP(sport=50000, dport=self.port) / packet
        proto = 17 if self.port else 47 if self.gre else 41 if IPv6 in inner else 4
        if self.outer == 4:
            return IP(src=there, dst=here, proto=proto, tos=tos, id=77) / packet
        return IPv6(src=there, dst=here, nh=proto, tc=tos) / packet


DEVICES = {
    device.name: device
    for device in (
        Device("g4", "gre", gre=True),
        Device("gk", "gre ikey 7 okey 8 csum ttl 20 tos 0x48", gre=True, out_key=8, in_key=7, checksum=True),
        Device("gi", "gre ttl 33 tos inherit", gre=True),
        Device("ii", "ipip tos inherit", inner=(4,)),
        Device("in", "ipip ttl inherit nopmtudisc", inner=(4,)),
        Device("st", "sit ttl 64"),
        Device("fo", f"ipip encap fou encap-sport auto encap-dport {FOU4}", inner=(4,), port=FOU4),
        Device("fc", f"ipip encap fou encap-sport 777 encap-dport {FOU4} encap-csum", inner=(4,), port=FOU4),
        Device("g6", "ip6gre", outer=6, gre=True),
        Device(
            "k6",
            "ip6gre key 9 csum hoplimit 20 tclass inherit encaplimit none",
            6,
            gre=True,
            out_key=9,
            in_key=9,
            checksum=True,
        ),
        Device("t6", "ip6tnl mode any", outer=6),
        Device("t4", "ip6tnl mode ip4ip6 encaplimit none hoplimit 7", outer=6, inner=(4,)),
        Device(
            "f6",
            f"ip6tnl mode ip6ip6 encaplimit none encap fou encap-sport auto encap-dport {FOU6}",
            6,
            (6,),
            port=FOU6,
        ),
    )
}
UNSUPPORTED = {
    "gretap": "gretap local 10.1.1.1 remote 192.0.2.70",
    "seq": "gre local 10.1.1.1 remote 192.0.2.71 seq",
    "many": "gre local 10.1.1.1 key 5",
    "gue": "ipip local 10.1.1.1 remote 192.0.2.72 encap gue encap-dport 6080",
    "ext": "ipip external",
    "label": "ip6tnl local 2001:db8:1:1::1 remote 2001:db8:2::73 flowlabel 0x12345",
    "alien": "ipip local 10.77.0.1 remote 192.0.2.74",
}
ECN_PAIRS = [(outer, inner) for outer in range(4) for inner in range(4)]


def packet(
    source: str, to: str, ttl: int = 64, tos: int = 0, payload: bytes = b"some bytes of data", **more: Any
) -> Packet:
    """A UDP packet."""
    if ":" in to:
        return IPv6(src=source, dst=to, hlim=ttl, tc=tos) / UDP(sport=1024, dport=53) / Raw(payload)
    return IP(src=source, dst=to, ttl=ttl, tos=tos, **more) / UDP(sport=1024, dport=53) / Raw(payload)


def inward() -> Iterator[tuple[str, bytes]]:
    """Packets that h0 sends, and where."""
    for device in DEVICES.values():
        for family in device.inner:
            source, to = HOSTS[0][family], device.far(family)
            for ttl in (2, 64, 255):
                yield device.name, bytes(packet(source, to, ttl))
            for tos in (0xB8, 0x01, 0x02, 0x29, 0x2B):
                yield device.name, bytes(packet(source, to, tos=tos))
            yield device.name, bytes(packet(source, to, payload=bytes(range(256)) * 4 + b"odd"))
            if family == 4:
                yield device.name, bytes(packet(source, to, flags="DF"))


def outward() -> Iterator[tuple[str, bytes]]:
    """Packets that h1 sends, right and wrong ones."""
    for device in DEVICES.values():
        for family in device.inner:
            inner = packet(device.far(family), HOSTS[0][family])
            for ttl in (2, 64):
                yield device.name, bytes(device.received(packet(device.far(family), HOSTS[0][family], ttl)))
            for outer, tos in ECN_PAIRS:
                inside = packet(device.far(family), HOSTS[0][family], tos=0x28 | tos)
                yield device.name, bytes(device.received(inside, tos=outer))
            if not device.gre:
                continue
            yield "no checksum", bytes(device.received(inner, chksum_present=int(not device.checksum)))
            yield "another key", bytes(device.received(inner, key_present=1, key=99))
            yield "wrong checksum", bytes(device.received(inner, chksum_present=1, chksum=0x1234))
            yield "a number", bytes(device.received(inner, seqnum_present=1, seqence_number=5))
        yield "cut", bytes(device.received(packet(device.far(device.inner[0]), HOSTS[0][device.inner[0]])))[:-9]
    gre, t6 = DEVICES["g4"], DEVICES["t6"]
    inside = packet(gre.far(4), HOSTS[0][4])
    yield (
        "gre in UDP",
        bytes(IP(src=gre.ends()[1], dst=gre.ends()[0]) / UDP(dport=GRE_IN_UDP) / GRE(proto=0x0800) / inside),
    )
    yield "from elsewhere", bytes(IP(src="192.0.2.200", dst=OWN[1][4], proto=4) / inside)
    limited = IPv6ExtHdrDestOpt(nh=4, options=[b"\x04\x01\x04", b"\x01\x01\x00"])
    yield (
        "a limit",
        bytes(IPv6(src=t6.ends()[1], dst=t6.ends()[0], nh=60))
        + bytes(limited)[:8]
        + bytes(packet(t6.far(4), HOSTS[0][4])),
    )


def comparable(sent: bytes | None) -> bytes | None:
    """What must be equal of a frame: all but what each sender chooses (IPv4 id, flow label, UDP source port), and sums of it."""
    if sent is None:
        return None
    found = bytearray(sent)
    if found[12:14] == b"\x08\x00":
        found[18:20] = found[24:26] = b"\0\0"
        l4, protocol = 34, found[23]
    else:
        found[15:18] = bytes([found[15] & 0xF0, 0, 0])
        l4, protocol = 54, found[20]
    if protocol == 17:
        found[l4 : l4 + 2] = b"\0\0"
        found[l4 + 6 : l4 + 8] = b"\1\1" if any(found[l4 + 6 : l4 + 8]) else b"\0\0"
    return bytes(found)


class Tunnelled:
    """Router and hosts; close() removes everything."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        hosts = [self.lab.namespace(f"h{side}", silent=True) for side in range(2)]
        ends = [End(host, "eth0", HOST_MAC.format(side)) for side, host in enumerate(hosts)]
        for side, end in enumerate(ends):
            self.lab.cable(self.router.end(side), end)
        self.router.start(2)
        self.wires = [Wire(end) for end in ends]
        self.macs = [self._mac(port_name(side)) for side in range(2)]
        self._configure()
        self.settle()

    def _mac(self, device: str) -> bytes:
        (link,) = json.loads(self.router.namespace.ip("-json", "link", "show", "dev", device))
        return bytes.fromhex(link["address"].replace(":", ""))

    def _configure(self) -> None:
        router = self.router.namespace
        router.run("modprobe", "-a", *MODULES)
        for side in range(2):
            device = port_name(side)
            for family, length in ((4, 24), (6, 64)):
                batch(
                    router, [f"address add {OWN[side][family]}/{length} dev {device} {'nodad' if family == 6 else ''}"]
                )
                far = HOSTS[side][family]
                batch(router, [f"neighbour replace {far} lladdr {HOST_MAC.format(side)} dev {device} nud permanent"])
        batch(router, [f"route add 192.0.2.0/24 via {HOSTS[1][4]}", f"route add 2001:db8:2::/64 via {HOSTS[1][6]}"])
        for tunnel in DEVICES.values():
            batch(router, tunnel.lines())
        batch(router, [f"fou add port {FOU4} ipproto 4", f"fou add port {FOU6} ipproto 41 -6"])
        batch(router, [f"fou add port {GRE_IN_UDP} ipproto 47"])

    def settle(self) -> None:
        """Wait until workers have all devices and ports."""
        if isinstance(self.router, Dl3dRouter):
            router = self.router
            wait_until(lambda: _served(router) >= set(DEVICES), "workers serve all devices")
        self.router.settle()

    def account(self) -> str:
        """Where packets went, for messages."""
        return str(self.router.account()) if isinstance(self.router, Dl3dRouter) else "in the kernel"

    def _send(self, side: int, inside: bytes) -> None:
        """Workers do not keep the order of packets of tunnels and others that they receive at once."""
        before = self._received()
        kind = 0x86DD if inside[0] >> 4 == 6 else 0x0800
        source = bytes.fromhex(HOST_MAC.format(side).replace(":", ""))
        self.wires[side].send(self.macs[side] + source + struct.pack("!H", kind) + inside)
        if isinstance(self.router, Dl3dRouter):
            wait_until(lambda: self._received() > before, f"{inside.hex()} has been received")

    def _received(self) -> int:
        return self.router.account().received if isinstance(self.router, Dl3dRouter) else 0

    def pass_through(self, side: int, packets: list[bytes]) -> list[bytes | None]:
        """For each packet from a side, what leaves on the other one; None: nothing."""
        other = 1 - side
        mark = bytes(packet(HOSTS[side][4], HOSTS[other][4], payload=MARK))
        found: list[bytes | None] = []
        self.wires[other].drain()
        for one in packets:
            self._send(side, one)
            got: list[bytes] = []
            for n_marks in (1, 2):  # Linux takes packets out of tunnels after what it has received with them
                self._send(side, mark)
                while sum(MARK in left for left in got) < n_marks:
                    left = self.wires[other].receive(60.0)
                    assert left, f"the mark after {one.hex()} is lost: {self.account()}"
                    if left[6:12] == self.macs[other] and not _is_noise(left):
                        got.append(left[:6] + bytes(6) + left[12:])
            got = [left for left in got if MARK not in left]
            assert len(got) <= 1, one.hex()
            found.append(got[0] if got else None)
        return found

    def rx_packets(self) -> dict[str, int]:
        """What Linux's own devices have received."""
        links = json.loads(self.router.namespace.ip("-json", "-statistics", "link"))
        return {link["ifname"]: link["stats64"]["rx"]["packets"] for link in links if link["ifname"] in DEVICES}

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        for wire in self.wires:
            wire.close()
        self.router.close()
        self.lab.close()


def _is_noise(left: bytes) -> bool:
    """Linux solicits routers and reports groups on its devices: to groups, alone or in a tunnel."""
    is_ip = left[12:14] in (b"\x08\x00", b"\x86\xdd")
    return not is_ip or any(kind in left for kind in (b"\xff\x02" + bytes(11), b"\xff\x02" + bytes(13)))


def _served(router: Dl3dRouter) -> set[str]:
    return {tunnel["name"] for tunnel in router.call("tunnels")["tunnels"]}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("kernel")) as made:
        yield made


@pytest.fixture(scope="module")
def workers() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("dl3d")) as made:
        yield made
        made.router.check()


def _compare(pair: tuple[Tunnelled, Tunnelled], side: int, named: list[tuple[str, bytes]]) -> list[bytes | None]:
    packets = [one for _, one in named]
    wanted, found = (router.pass_through(side, packets) for router in pair)
    wrong = [
        f"{name}: in {one.hex()}\nkernel {a.hex() if a else None}\ndl3d   {b.hex() if b else None}"
        for (name, one), a, b in zip(named, wanted, found, strict=True)
        if comparable(a) != comparable(b)
    ]
    assert not wrong, f"{len(wrong)} of {len(wanted)} differ:\n" + "\n".join(wrong[:12])
    return wanted


def workers_send_into_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    assert isinstance(workers.router, Dl3dRouter)
    named = list(inward())
    before = workers.router.closed_account()
    wanted = _compare((kernel, workers), 0, named)
    after = workers.router.closed_account()
    assert all(wanted), [name for (name, _), one in zip(named, wanted, strict=True) if one is None]
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= 2 * len(named), "workers sent them and the marks, not Linux"
    counted = {tunnel["name"]: tunnel["tx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= sum(one == name for one, _ in named) for name in DEVICES), counted


def workers_take_packets_out_of_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    assert isinstance(workers.router, Dl3dRouter)
    named = list(outward())
    seen, before = workers.rx_packets(), workers.router.closed_account()
    wanted = _compare((kernel, workers), 1, named)
    after = workers.router.closed_account()
    assert sum(one is not None for one in wanted) > len(named) // 2
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= sum(one is not None for one in wanted) + len(named), "workers forwarded them, not Linux"
    assert workers.rx_packets() == seen, "Linux has not received what workers took out"
    counted = {tunnel["name"]: tunnel["rx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= 2 for name in DEVICES), counted


def sources_are_checked_on_the_tunnel(kernel: Tunnelled, workers: Tunnelled) -> None:
    device = DEVICES["g4"]
    named = [
        (source, bytes(device.received(packet(source, HOSTS[0][4]))))
        for source in (device.far(4), DEVICES["gk"].far(4), HOSTS[1][4])
    ]
    for one in (kernel, workers):
        one.router.namespace.set_sysctl("net.ipv4.conf.g4.rp_filter", "1")
        one.settle()
    assert isinstance(workers.router, Dl3dRouter)
    wanted = _compare((kernel, workers), 1, named)
    assert [one is not None for one in wanted] == [True, False, False]
    assert workers.router.account().drops.get("rpf_failed", 0) >= 1
    for one in (kernel, workers):
        one.router.namespace.set_sysctl("net.ipv4.conf.g4.rp_filter", "0")


def what_linux_keeps_is_named(workers: Tunnelled) -> None:
    router = workers.router
    assert isinstance(router, Dl3dRouter)
    batch(router.namespace, [f"link add {name} type {words}" for name, words in UNSUPPORTED.items()])
    batch(router.namespace, [f"link set {name} up" for name in UNSUPPORTED])
    batch(router.namespace, ["fou add port 6080 gue"])

    def named() -> set[str]:
        return {str(row["where"]) for row in router.call("unsupported")["unsupported"]}

    wait_until(lambda: named() >= {*UNSUPPORTED, "port 6080 of IPv4"}, f"all are named: {named()}")
    assert not named() & set(DEVICES)
    batch(router.namespace, [f"link del {name}" for name in UNSUPPORTED] + ["fou del port 6080"])
    wait_until(lambda: not named() & {*UNSUPPORTED, "port 6080 of IPv4"}, f"none is left: {named()}")
