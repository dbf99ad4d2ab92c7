"""Tunnel devices of Linux, byte for byte as the kernel sends and receives them. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      the same frames go in, once to the kernel and once to dl3d's workers; all remote ends of
                                  tunnels are behind h1
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from harness.frames import IP, UDP, IPv6, Packet, Raw
from harness.router import Dl3dRouter
from harness.shell import batch
from harness.tunnelled import HOSTS, OWN, Tunnelled, check_sent, check_taken, compared, packet
from harness.wire import wait_until
from scapy.layers.l2 import GRE

from dl3.lab.namespace import Namespace

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
    "erspan": "erspan seq key 3 erspan_ver 1 erspan 5 local 10.1.1.1 remote 192.0.2.70",
    "seq": "gre local 10.1.1.1 remote 192.0.2.71 seq",
    "many": "gre local 10.1.1.1 key 5",
    "gue": "ipip local 10.1.1.1 remote 192.0.2.72 encap gue encap-dport 6080",
    "ext": "ipip external",
    "label": "ip6tnl local 2001:db8:1:1::1 remote 2001:db8:2::73 flowlabel 0x12345",
    "alien": "ipip local 10.77.0.1 remote 192.0.2.74",
}
ECN_PAIRS = [(outer, inner) for outer in range(4) for inner in range(4)]


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
    limited = bytes([4, 0, 4, 1, 4, 1, 1, 0])  # options before IPv4: the limit, padding
    yield (
        "a limit",
        bytes(IPv6(src=t6.ends()[1], dst=t6.ends()[0], nh=60) / Raw(limited + bytes(packet(t6.far(4), HOSTS[0][4])))),
    )


def configure(router: Namespace) -> None:
    """All devices, and the ports on which they receive."""
    router.run("modprobe", "-a", *MODULES)
    for tunnel in DEVICES.values():
        batch(router, tunnel.lines())
    batch(router, [f"fou add port {FOU4} ipproto 4", f"fou add port {FOU6} ipproto 41 -6"])
    batch(router, [f"fou add port {GRE_IN_UDP} ipproto 47"])


@pytest.fixture(scope="module")
def kernel() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("kernel", DEVICES, configure)) as made:
        yield made


@pytest.fixture(scope="module")
def workers() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("dl3d", DEVICES, configure)) as made:
        yield made
        made.router.check()


def workers_send_into_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    check_sent(kernel, workers, list(inward()))


def workers_take_packets_out_of_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    check_taken(kernel, workers, list(outward()))


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
    wanted = compared((kernel, workers), 1, named)
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
