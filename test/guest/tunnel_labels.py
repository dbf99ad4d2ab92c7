"""MPLS in tunnel devices of Linux, byte for byte as the kernel sends and receives it. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      the same packets go in, once to the kernel and once to dl3d's workers; all remote ends of
                                  tunnels are behind h1
"""

import contextlib
import itertools
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from harness.frames import IP, UDP, IPv6, Packet, Raw
from harness.router import Dl3dRouter
from harness.shell import batch
from harness.tunnelled import HOSTS, OWN, Tunnelled, compared, packet
from harness.wire import wait_until
from scapy.layers.l2 import GRE

from dl3.lab.namespace import Namespace

MODULES = ("mpls_router", "mpls_iptunnel", "ip_gre", "ipip", "sit", "ip6_gre", "ip6_tunnel", "fou", "fou6")
PORT, PROTOCOL = 6635, 137
SEED = 27
LOOKUP, POPPED, SWAPPED, RED, UNKNOWN = 500, 501, 502, 503, 999  # what is received out of a tunnel
FORWARDED = (LOOKUP, POPPED, SWAPPED, RED)


@dataclass(frozen=True)
class Device:
    """A tunnel device that carries labels."""

    name: str
    words: str
    outer: int = 4
    gre: bool = False
    key: int = -1
    checksum: bool = False
    udp: bool = False
    has_ip: bool = True  # it carries packets without labels, too

    @property
    def number(self) -> int:
        """Each has networks and labels of its own."""
        return list(DEVICES).index(self.name) + 1

    def ends(self) -> tuple[str, str]:
        """Its local and its remote address."""
        here = OWN[1][self.outer]
        return here, f"192.0.2.{self.number}" if self.outer == 4 else f"2001:db8:2::{self.number:x}"

    def far(self, family: int, way: int = 0) -> str:
        """A host behind the other end, to which one of four ways of labels leads."""
        return f"10.6{way}.{self.number}.9" if family == 4 else f"2001:db8:6{way}:{self.number:x}::9"

    def pushed(self) -> list[str]:
        """What its routes push, by the way."""
        return [f"{100 + self.number}", f"{100 + self.number}/200/300", f"{100 + self.number} ttl 17", "2"]

    def label(self, way: int) -> int:
        """A label that leads into it: swapped for one, for three, popped."""
        return 1000 + 100 * way + self.number

    def lines(self) -> Iterator[str]:
        """Commands that make it, and routes into it."""
        local, remote = self.ends()
        yield f"link add {self.name} type {self.words} local {local} remote {remote}"
        yield f"link set {self.name} up"
        for (way, labels), family in itertools.product(enumerate(self.pushed()), (4, 6)):
            length = 32 if family == 4 else 128
            yield f"route add {self.far(family, way)}/{length} encap mpls {labels} dev {self.name}"

    def received(self, inside: bytes, tos: int = 0, **gre: int) -> Packet:
        """A packet of the other end with these labels and what follows them."""
        here, there = self.ends()
        made: Packet = Raw(inside)
        if self.gre:
            key = {"key_present": 1, "key": self.key} if self.key >= 0 else {}
            fields: dict[str, Any] = {"chksum_present": int(self.checksum)} | key | gre
            made = GRE(proto=0x8847, **fields) / made
        if self.udp:
            made = UDP(sport=50000, dport=PORT) / made
        protocol = 17 if self.udp else 47 if self.gre else PROTOCOL
        if self.outer == 4:
            return IP(src=there, dst=here, proto=protocol, tos=tos, id=77) / made
        return IPv6(src=there, dst=here, nh=protocol, tc=tos) / made


FOU = "encap fou encap-sport auto encap-dport 6635"
DEVICES = {
    device.name: device
    for device in (
        Device("mu", f"ipip mode mplsip {FOU}", udp=True, has_ip=False),
        Device("mc", "ipip mode any ttl 33 tos 0x48 encap fou encap-sport 777 encap-dport 6635 encap-csum", udp=True),
        Device("mi", "ipip mode mplsip ttl inherit nopmtudisc", has_ip=False),
        Device("ms", "sit mode any tos inherit"),
        Device("mg", "gre", gre=True),
        Device("mk", "gre key 7 csum ttl 20", gre=True, key=7, checksum=True),
        Device("m6", "ip6gre", outer=6, gre=True),
        Device("mt", "ip6tnl mode any", outer=6),
        Device("mf", f"ip6tnl mode any encaplimit none hoplimit 9 {FOU} encap-udp6-csum", outer=6, udp=True),
    )
}
DEAF = Device("md", "gre key 8", gre=True, key=8)  # net.mpls.conf.md.input is 0


def label(number: int, ttl: int = 64, bottom: bool = True) -> bytes:
    """A label on the wire (RFC 3032, 2.1)."""
    return struct.pack("!I", number << 12 | 5 << 9 | bottom << 8 | ttl)


def configure(router: Namespace) -> None:
    """All devices, routes into them, and routes of labels."""
    router.run("modprobe", "-a", *MODULES)
    router.ip("link", "set", "lo", "up")
    batch(router, ["link add red type vrf table 1001", "link set red up"])
    router.run("sysctl", "-qw", "net.mpls.platform_labels=5000", "net.mpls.conf.p0.input=1", "net.mpls.conf.lo.input=1")
    for device in DEVICES.values():
        batch(router, device.lines())
        router.run("sysctl", "-qw", f"net.mpls.conf.{device.name}.input=1")
    local, remote = OWN[1][4], "192.0.2.99"
    batch(router, [f"link add md type {DEAF.words} local {local} remote {remote}", "link set md up"])
    batch(router, [f"fou add port {PORT} ipproto {PROTOCOL}", f"fou add port {PORT} ipproto {PROTOCOL} -6"])
    near = HOSTS[0]
    batch(router, [f"route add 10.1.0.0/24 via {near[4]} dev p0 onlink vrf red"])
    batch(router, [f"route add 2001:db8:1::/64 via {near[6]} dev p0 onlink vrf red"])
    lines = [f"{LOOKUP} dev lo", f"{POPPED} via inet {near[4]}", f"{SWAPPED} as 700/701 via inet6 {near[6]}"]
    lines.append(f"{RED} dev red")
    for device in DEVICES.values():
        lines += [f"{device.label(0)} as {2000 + device.number} dev {device.name}"]
        lines += [f"{device.label(1)} as {2000 + device.number}/201/202 dev {device.name}"]
        lines += [f"{device.label(2)} dev {device.name}"]
    batch(router, [f"route add {line}" for line in lines], "-M")


def _random_packet(dice: random.Random, source: str, to: str) -> bytes:
    """With a TTL, a TOS and a payload of its own."""
    more = {"flags": "DF"} if ":" not in to and dice.random() < 0.5 else {}
    payload = dice.randbytes(dice.randrange(1, 1200))
    return bytes(packet(source, to, dice.choice((2, 3, 64, 255)), dice.randrange(256), payload, **more))


def inward() -> Iterator[tuple[str, bytes]]:
    """Packets that h0 sends, alone and with labels, and where."""
    dice = random.Random(SEED)
    for device, family in itertools.product(DEVICES.values(), (4, 6)):
        source = HOSTS[0][family]
        for way in range(len(device.pushed())):
            yield device.name, _random_packet(dice, source, device.far(family, way))
        inside = _random_packet(dice, source, device.far(family))
        for way in range(3):
            for ttl in (1, 2, 64):
                yield f"label into {device.name}", label(device.label(way), ttl) + inside
            deeper = label(777, 7) + inside
            yield f"labels into {device.name}", label(device.label(way), 9, bottom=False) + deeper


def outward() -> Iterator[tuple[str, bytes]]:
    """Packets that h1 sends, right and wrong ones."""
    dice = random.Random(SEED + 1)
    for device, family in itertools.product(DEVICES.values(), (4, 6)):
        inside = _random_packet(dice, device.far(family), HOSTS[0][family])
        for number, ttl in itertools.product((*FORWARDED, UNKNOWN), (1, 64)):
            yield device.name, bytes(device.received(label(number, ttl) + inside, tos=0x28))
        two = label(LOOKUP, 9, bottom=False) + label(SWAPPED, 30) + inside
        yield f"two labels in {device.name}", bytes(device.received(two))
        yield f"null in {device.name}", bytes(device.received(label(0 if family == 4 else 2, 30) + inside))
        yield f"no label in {device.name}", bytes(device.received(b"\0\x01\xf4"))
        if device.gre:
            yield "wrong checksum", bytes(device.received(label(LOOKUP) + inside, chksum_present=1, chksum=0x1234))
            yield "another key", bytes(device.received(label(LOOKUP) + inside, key_present=1, key=99))
    local, remote = OWN[1][4], "192.0.2.99"
    inside = _random_packet(dice, DEVICES["mg"].far(4), HOSTS[0][4])
    deaf = GRE(proto=0x8847, key_present=1, key=8) / Raw(label(LOOKUP) + inside)
    yield "not told to listen", bytes(IP(src=remote, dst=local, proto=47) / deaf)
    yield "from elsewhere", bytes(IP(src="192.0.2.200", dst=local, proto=PROTOCOL) / Raw(label(LOOKUP) + inside))


def _labels(router: Dl3dRouter) -> set[int]:
    """Those that workers forward."""
    return {one["label"] for one in router.call("labels")["labels"] if one["does"] != "linux"}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("kernel", DEVICES, configure)) as made:
        yield made


@pytest.fixture(scope="module")
def workers() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("dl3d", DEVICES, configure)) as made:
        router = made.router
        assert isinstance(router, Dl3dRouter)
        wanted = {*FORWARDED, *(one.label(way) for one in DEVICES.values() for way in range(3))}
        wait_until(lambda: _labels(router) >= wanted, "workers forward all labels")
        yield made
        made.router.check()


def workers_push_and_swap_into_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    assert isinstance(workers.router, Dl3dRouter)
    named = list(inward())
    before = workers.router.closed_account()
    wanted = compared((kernel, workers), 0, named)
    after = workers.router.closed_account()
    left = sum(one is not None for one in wanted)
    assert left > len(named) // 2
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= left + 2 * len(named), f"workers sent {left} and two marks for each, not Linux"
    counted = {tunnel["name"]: tunnel["tx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= 16 for name in DEVICES), counted


def workers_take_labels_out_of_tunnels_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    assert isinstance(workers.router, Dl3dRouter)
    named = list(outward())
    seen, before = workers.rx_packets(), workers.router.closed_account()
    wanted = compared((kernel, workers), 1, named)
    after = workers.router.closed_account()
    left = sum(one is not None for one in wanted)
    assert left > len(named) // 3
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    assert by_workers >= left + 2 * len(named), f"workers forwarded {left} and two marks for each, not Linux"
    counted = {tunnel["name"]: tunnel["rx_packets"] for tunnel in workers.router.call("tunnels")["tunnels"]}
    assert all(counted[name] >= 16 for name in DEVICES), (counted, seen, workers.rx_packets())


def labels_below_are_left_if_the_kernel_leaves_them(kernel: Tunnelled, workers: Tunnelled) -> None:
    inside = bytes(packet(DEVICES["mu"].far(4), HOSTS[0][4]))
    two = [bytes(DEVICES["mu"].received(label(LOOKUP, 9, bottom=False) + label(SWAPPED, 30) + inside))]
    for router in (kernel, workers):
        router.router.namespace.set_sysctl("net.mpls.conf.lo.input", "0")
    assert kernel.pass_through(1, two) == [None]
    wait_until(lambda: workers.pass_through(1, two) == [None], "workers left it to Linux")
    for router in (kernel, workers):
        router.router.namespace.set_sysctl("net.mpls.conf.lo.input", "1")
    assert kernel.pass_through(1, two) != [None]
    wait_until(lambda: workers.pass_through(1, two) != [None], "workers forwarded it")


def workers_do_not_forget_congestion(workers: Tunnelled) -> None:
    mu = DEVICES["mu"]
    inside = bytes(packet(mu.far(4), HOSTS[0][4], tos=2))
    (left,) = workers.pass_through(1, [bytes(mu.received(label(LOOKUP) + inside, tos=3))])
    assert left is not None
    assert left[15] & 3 == 3, left.hex()
