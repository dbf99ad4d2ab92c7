"""Devices of frames in GRE, byte for byte as the kernel sends and receives them. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      the same frames go in, once to the kernel and once to dl3d's workers; all remote ends are
                                  behind h1, and a host behind each; the last device is in a bridge, the others in none
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from harness.frames import IP, Ether, IPv6, Packet
from harness.shell import batch
from harness.tunnelled import HOSTS, OWN, Tunnelled, check_sent, check_taken, packet
from scapy.layers.l2 import GRE

from dl3.lab.namespace import Namespace

BRIDGE = "br0"
ECN_PAIRS = [(outer, inner) for outer in range(4) for inner in range(4)]


@dataclass(frozen=True)
class Device:
    """A device, and what its packets are like."""

    name: str
    words: str
    outer: int = 4
    key: int = -1
    checksum: bool = False
    bridged: bool = False

    @property
    def number(self) -> int:
        """Each has networks of its own."""
        return list(DEVICES).index(self.name) + 1

    @property
    def mac(self) -> str:
        """The router's own address on it."""
        return f"02:00:00:00:70:{self.number:02x}"

    @property
    def far_mac(self) -> str:
        """The host behind the other end."""
        return f"02:00:00:00:71:{self.number:02x}"

    def ends(self) -> tuple[str, str]:
        """Its local and its remote address."""
        return OWN[1][self.outer], f"192.0.2.{self.number}" if self.outer == 4 else f"2001:db8:2::{self.number:x}"

    def far(self, family: int) -> str:
        """A host behind the other end."""
        return f"10.70.{self.number}.9" if family == 4 else f"2001:db8:70:{self.number:x}::9"

    def lines(self) -> Iterator[str]:
        """Commands that make it."""
        local, remote = self.ends()
        yield f"link add {self.name} type {self.words} local {local} remote {remote}"
        routed = BRIDGE if self.bridged else self.name
        if self.bridged:
            yield f"link add {BRIDGE} type bridge mcast_snooping 0"
            yield f"link set {self.name} master {BRIDGE}"
            yield f"link set {self.name} up"
        yield f"link set {routed} address {self.mac}"
        yield f"link set {routed} up"
        for family, length in ((4, 24), (6, 64)):
            own = self.far(family)[:-1] + "1"
            yield f"address add {own}/{length} dev {routed} {'nodad' if family == 6 else ''}"
            yield f"neighbour replace {self.far(family)} lladdr {self.far_mac} dev {routed} nud permanent"

    def received(self, inner: Packet, tos: int = 0, **gre: Any) -> bytes:
        """A packet of the other end with this one in a frame in it."""
        here, there = self.ends()
        key = {"key_present": 1, "key": self.key} if self.key >= 0 else {}
        fields: dict[str, Any] = {"chksum_present": int(self.checksum)} | key | gre
        frame = GRE(proto=0x6558, **fields) / Ether(dst=self.mac, src=self.far_mac) / inner
        if self.outer == 4:
            return bytes(IP(src=there, dst=here, proto=47, tos=tos, id=77) / frame)
        return bytes(IPv6(src=there, dst=here, nh=47, tc=tos) / frame)


DEVICES = {
    device.name: device
    for device in (
        Device("gt", "gretap"),
        Device("gtk", "gretap key 7 csum ttl 20 tos 0x48", key=7, checksum=True),
        Device("gti", "gretap ttl inherit tos inherit nopmtudisc"),
        Device("g6t", "ip6gretap", 6),
        Device("g6k", "ip6gretap key 9 csum hoplimit 20 tclass inherit encaplimit none", 6, key=9, checksum=True),
        Device("gb", "gretap key 5", key=5, bridged=True),
    )
}


def inward() -> Iterator[tuple[str, bytes]]:
    """Packets that h0 sends, and where."""
    for device in DEVICES.values():
        for family in (4, 6):
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
        for family in (4, 6):
            inner = packet(device.far(family), HOSTS[0][family])
            for ttl in (2, 64):
                yield device.name, device.received(packet(device.far(family), HOSTS[0][family], ttl))
            for outer, tos in ECN_PAIRS:
                inside = packet(device.far(family), HOSTS[0][family], tos=0x28 | tos)
                yield device.name, device.received(inside, tos=outer)
            yield "no checksum", device.received(inner, chksum_present=int(not device.checksum))
            yield "another key", device.received(inner, key_present=1, key=99)
            yield "wrong checksum", device.received(inner, chksum_present=1, chksum=0x1234)
        yield "cut", device.received(packet(device.far(4), HOSTS[0][4]))[:-9]


def configure(router: Namespace) -> None:
    """All devices, and where the host behind the bridge is."""
    router.run("modprobe", "-a", "ip_gre", "ip6_gre", "bridge")
    for device in DEVICES.values():
        batch(router, device.lines())
        if device.bridged:
            router.run("bridge", "fdb", "replace", device.far_mac, "dev", device.name, "master", "static")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("kernel", DEVICES, configure)) as made:
        yield made


@pytest.fixture(scope="module")
def workers() -> Iterator[Tunnelled]:
    with contextlib.closing(Tunnelled("dl3d", DEVICES, configure)) as made:
        yield made
        made.router.check()


def workers_send_frames_in_gre_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    check_sent(kernel, workers, list(inward()))


def workers_take_frames_out_of_gre_as_the_kernel_does(kernel: Tunnelled, workers: Tunnelled) -> None:
    check_taken(kernel, workers, list(outward()))
