"""Frames that hosts send at random into and out of overlays; each carries its number."""

import random
import struct
from dataclasses import dataclass
from ipaddress import ip_address

MAGIC = b"vxo!"
BROADCAST = bytes([255] * 6)
UNKNOWN = [bytes.fromhex(f"02000000f0{last:02x}") for last in range(2)]
GROUPS = [bytes.fromhex(text) for text in ("01005e010203", "333300010002", "01cc00000007")]
RESERVED = [bytes.fromhex(text) for text in ("0180c2000000", "0180c2000002", "0180c200000e")]
ODD_SOURCES = [bytes(6), bytes.fromhex("01005e000009"), BROADCAST]
IP4, IP6, ARP, OTHER = 0x0800, 0x86DD, 0x0806, 0x88B5
UDP, TCP = 17, 6
DONT_FRAGMENT, MORE_FRAGMENTS = 0x4000, 0x2000
VNI_FLAG = 0x08000000


def fold(data: bytes) -> int:
    """The sum of RFC 1071, not inverted."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(total)


def packed(address: str) -> bytes:
    """The bytes of an address."""
    return ip_address(address).packed


@dataclass
class Udp:
    """A UDP or TCP header with data; `checksum` None: the right one."""

    source: int
    to: int
    data: bytes
    protocol: int = UDP
    checksum: int | None = None

    def packed(self, source: bytes, to: bytes) -> bytes:
        """As sent between two addresses."""
        if self.protocol == UDP:
            head, at = struct.pack("!HHHH", self.source, self.to, 8 + len(self.data), 0), 6
        else:
            head, at = struct.pack("!HHIIHHHH", self.source, self.to, 1, 1, 0x5010, 512, 0, 0), 16
        whole = bytearray(head + self.data)
        pseudo = source + to + struct.pack("!II", len(whole), self.protocol)
        found = 0xFFFF ^ fold(pseudo + bytes(whole)) or 0xFFFF
        struct.pack_into("!H", whole, at, found if self.checksum is None else self.checksum)
        return bytes(whole)


@dataclass
class Header:
    """What an IP header says beside its addresses."""

    tos: int = 0
    ttl: int = 64
    fragment: int = 0  # flags and offset of IPv4


def ip_packet(source: str, to: str, header: Header, inside: Udp) -> bytes:
    """An IPv4 or IPv6 packet."""
    a, b = packed(source), packed(to)
    data = inside.packed(a, b)
    if len(a) == 16:
        word = 6 << 28 | header.tos << 20
        return struct.pack("!IHBB", word, len(data), inside.protocol, header.ttl) + a + b + data
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        header.tos,
        20 + len(data),
        0x1234,
        header.fragment,
        header.ttl,
        inside.protocol,
        0,
        a,
        b,
    )
    return head[:10] + struct.pack("!H", 0xFFFF ^ fold(head)) + head[12:] + data


def vxlan(vni: int, frame: bytes, first_word: int = VNI_FLAG, reserved: int = 0) -> bytes:
    """The header of RFC 7348, and a frame."""
    return struct.pack("!II", first_word, vni << 8 | reserved) + frame


def ether(to: bytes, source: bytes, kind: int, data: bytes) -> bytes:
    """A frame."""
    return to + source + struct.pack("!H", kind) + data


LENGTHS = (46, 60, 60, 60, 60, 200, 700)  # of packets
LONG_LENGTHS = (1250, 1300, 1350, 1386, 1401, 1430, 1436, 1450, 1451, 1500)


class Dice(random.Random):
    """Draws what frames are made of."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.first = seed
        self.number = 0
        self.is_long = False

    def one_in(self, n: int) -> bool:
        """True once in n times."""
        return self.randrange(n) == 0

    def header(self) -> Header:
        """Mostly a usual one."""
        tos = self.choice((0, 0, 0, 1, 2, 3, 0xB8, 0xB9, 0xBB, 0x28))
        ttl = self.choice((64, 64, 64, 64, 255, 33, 2, 1))
        return Header(tos, ttl, self.choice((0, 0, DONT_FRAGMENT)))

    def data(self, header_bytes: int) -> bytes:
        """A number, and bytes up to one of a few lengths of the packet."""
        self.number += 1
        n = self.choice(LONG_LENGTHS if self.is_long else LENGTHS)
        return MAGIC + struct.pack("!I", self.number) + bytes(max(n - header_bytes - 8, 0))

    def ip(self, source: str, to: str) -> bytes:
        """A packet of one of a few flows."""
        header = self.header()
        protocol = self.choice((UDP, UDP, TCP))
        size = (20 if "." in to else 40) + (8 if protocol == UDP else 20)
        if "." in to and self.one_in(25):
            header.fragment = self.choice((MORE_FRAGMENTS, MORE_FRAGMENTS | 185, 185))
        return ip_packet(source, to, header, Udp(1024 + self.randrange(4), 9, self.data(size), protocol))

    def arp(self, source: bytes) -> bytes:
        """A request for an address that nobody has."""
        head = struct.pack("!HHBBH", 1, IP4, 6, 4, 1)
        return head + source + packed("198.18.1.1") + bytes(6) + packed("198.18.1.9") + self.data(28)

    def frame(self, to: bytes, source: bytes) -> bytes:
        """A frame that bridges forward; its addresses say nothing to a router."""
        kind = self.choice((IP4, IP4, IP4, IP6, IP6, OTHER, ARP))
        if kind == IP4:
            inside = self.ip("198.18.0.1", "198.18.0.2")
        elif kind == IP6:
            inside = self.ip("2001:2::1", "2001:2::2")
        elif kind == ARP:
            inside = self.arp(source)
        else:
            inside = self.data(0)
        return self.tagged(ether(to, source, kind, inside))

    def tagged(self, frame: bytes) -> bytes:
        """Now and then with a tag."""
        if not self.one_in(12):
            return frame
        return frame[:12] + struct.pack("!HH", 0x8100, self.randrange(1, 4095)) + frame[12:]
