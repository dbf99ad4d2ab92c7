"""Two routers whose ports p0 to p2 are in a bridge, dl3d and the kernel alone: the same frames come out of both."""

import struct
from dataclasses import dataclass, field
from typing import Any, Self

from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6ND_Redirect

from dl3.lab.namespace import End
from harness.bridged import BRIDGE, BRIDGE_MAC, N_LINKS, ROUTED, BridgedRouter
from harness.frames import IP, UDP, Ether, IPv6, Packet, Raw
from harness.network import network
from harness.router import DEVICE, port_name, router_mac
from harness.wire import Wire, wait_until
from harness.wired import Account

OUTSIDE = "02:00:00:01:03:02"
BROADCAST = "ff:ff:ff:ff:ff:ff"
MAGIC = b"irb!"


def mac_of(host: int) -> str:
    """MAC address of a host on the bridge."""
    return f"02:00:00:01:05:{host:02x}"


def _comparable(frame: bytes) -> bytes | None:
    """A frame with one of our packets; without what Linux chooses at random. None: any other, and redirects."""
    if MAGIC not in frame:
        return None
    packet = Ether(frame)
    if ICMPv6ND_Redirect in packet or (ICMP in packet and packet[ICMP].type == 5):
        return None
    if ICMP in packet:
        at = frame.index(b"\x08\x00", 12) + 2  # behind any tags
        frame = frame[: at + 4] + bytes(2) + frame[at + 6 : at + 10] + bytes(2) + frame[at + 12 :]
    return frame


@dataclass
class Side:
    """A router, and the far ends of its cables."""

    routed: BridgedRouter
    wires: list[Wire]
    got: list[list[bytes]] = field(default_factory=list)

    @classmethod
    def build(cls, kind: str, neighbours: list[str], device: str = DEVICE) -> "Side":
        """With permanent neighbours: the far ends say nothing."""
        made = BridgedRouter(kind, device)
        far = made.lab.namespace("far", silent=True)
        ends = [End(far, f"e{link}", f"02:00:00:03:00:{link:02x}") for link in range(N_LINKS)]
        for link, end in enumerate(ends):
            made.lab.cable(made.router.end(link), end)
        made.start()
        made.ip(*neighbours)
        return cls(made, [Wire(end) for end in ends])

    def begin(self) -> None:
        """Nothing has come out yet."""
        self.got = [[] for _ in self.wires]

    def collect(self) -> list[list[bytes]]:
        """What has come out of each port."""
        for link, wire in enumerate(self.wires):
            self.got[link] = sorted(self.got[link] + [one for one in map(_comparable, wire.drain()) if one])
        return self.got

    def close(self) -> None:
        """Stop it."""
        for wire in self.wires:
            wire.close()
        self.routed.close()


@dataclass
class Both:
    """dl3d, and the kernel alone."""

    sides: tuple[Side, Side]
    behind: dict[int, int] = field(default_factory=dict)
    number: int = 0
    done: list[str] = field(default_factory=list)  # for messages

    @classmethod
    def build(cls, neighbours: list[str], device: str = DEVICE) -> Self:
        """Both; close them."""
        kernel = Side.build("kernel", neighbours, device)
        try:
            return cls((Side.build("dl3d", neighbours, device), kernel))
        except BaseException:
            kernel.close()
            raise

    def close(self) -> None:
        """Stop both."""
        for side in self.sides:
            side.close()

    def account(self) -> Account:
        """Of dl3d."""
        dl3d = self.sides[0].routed.dl3d
        assert dl3d
        return dl3d.account()

    def send(self, link: int, frames: list[bytes]) -> None:
        """Send frames on a port of both; the same ones must come out at the same ports, each once."""
        wanted = self.account().received + len(frames)
        for side in self.sides:
            side.begin()
            for one in frames:
                side.wires[link].send(one)

        def is_same() -> bool:
            ours, theirs = (side.collect() for side in self.sides)
            account = self.account()
            return ours == theirs and account.is_closed and account.received >= wanted

        try:
            wait_until(is_same, "the same frames had come out of both")
        except AssertionError as error:
            ours, theirs = ([[one.hex() for one in port] for port in side.got] for side in self.sides)
            sent = [one.hex() for one in frames]
            raise AssertionError(
                f"dl3d {ours}, the kernel {theirs}; sent on {link}: {sent}; hosts {self.behind}; {self.done}; {self.account()}"
            ) from error

    def introduce(self, host: int, link: int) -> None:
        """A host sends to all from behind a port; wait until both know."""
        self.number += 1
        self.behind[host] = link
        payload = MAGIC + struct.pack("!I", self.number) + bytes(40)
        self.send(link, [bytes(Ether(src=mac_of(host), dst=BROADCAST, type=0x88B5) / Raw(payload))])
        mac, name = mac_of(host), port_name(link)
        wait_until(lambda: all(side.routed.knows(mac) == name for side in self.sides), f"{mac} was known at {name}")

    def packet(self, source: str, target: str, **fields: Any) -> Packet:
        """A UDP packet that carries a number, in no frame that needs padding."""
        self.number += 1
        data = MAGIC + struct.pack("!I", self.number) + bytes(24 + fields.pop("more", 0))
        ttl = fields.pop("ttl", 64)
        head = (
            IPv6(src=source, dst=target, hlim=ttl) if ":" in target else IP(src=source, dst=target, ttl=ttl, **fields)
        )
        return head / UDP(sport=1024, dport=9) / Raw(data)

    def to_outside(self, family: int, host: int) -> bytes:
        """A packet of a host on the bridge to the one beyond the router."""
        packet = self.packet(network(family, BRIDGE, host), network(family, ROUTED, 2))
        return bytes(Ether(src=mac_of(host), dst=BRIDGE_MAC) / packet)

    def to_host(self, family: int, host: int) -> bytes:
        """The other way."""
        packet = self.packet(network(family, ROUTED, 2), network(family, BRIDGE, host))
        return bytes(Ether(src=OUTSIDE, dst=router_mac(ROUTED)) / packet)
