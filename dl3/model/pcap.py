"""Frames of a capture file: pcap or pcapng, in either byte order, of Ethernet."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from dl3.model.fault import UsageFault

PCAP_MAGICS = (0xA1B2C3D4, 0xA1B23C4D)  # microseconds, nanoseconds
PCAP_HEAD_BYTES, RECORD_BYTES = 24, 16
SECTION, IFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
ORDER_MAGIC = 0x1A2B3C4D
BLOCK_BYTES = 12  # type, length, and the length again
ETHERNET = 1
TYPE_MASK = 0x0FFFFFFF  # the upper bits of pcap's link type say something about the FCS
CUT = "ends within a packet; what follows is missing"


@dataclass(frozen=True)
class Captured:
    """A frame, or its start; length: of the whole one."""

    frame: bytes
    length: int


def check_link(kind: int, what: str) -> None:
    """Only Ethernet has frames for ports."""
    if kind != ETHERNET:
        raise UsageFault(f"{what} has packets of link type {kind}, not of Ethernet: choose another capture")


def pcap(data: bytes, order: str, what: str) -> Iterator[Captured]:
    """The records of a pcap file."""
    if len(data) < PCAP_HEAD_BYTES:
        raise UsageFault(f"{what} ends within its header: choose another capture")
    check_link(struct.unpack_from(order + "I", data, 20)[0] & TYPE_MASK, what)
    at = PCAP_HEAD_BYTES
    while at < len(data):
        if at + RECORD_BYTES > len(data):
            raise UsageFault(f"{what} {CUT}")
        n, length = struct.unpack_from(order + "II", data, at + 8)
        at += RECORD_BYTES
        if at + n > len(data):
            raise UsageFault(f"{what} {CUT}")
        yield Captured(data[at : at + n], length)
        at += n


@dataclass
class Section:
    """What the blocks of a pcapng section have said so far."""

    order: str = "<"
    kinds: list[tuple[int, int]] = field(default_factory=list)  # of each interface: link type, snap length

    def packet(self, kind: int, body: bytes, what: str) -> Captured | None:
        """The packet of a block; None: it has none."""
        fields = {ENHANCED: "IIIII", SIMPLE: "I"}.get(kind)
        if fields is None:
            return None
        if len(body) < struct.calcsize("=" + fields):
            raise UsageFault(f"{what} {CUT}")
        values = struct.unpack_from(self.order + fields, body)
        iface = values[0] if kind == ENHANCED else 0
        if iface >= len(self.kinds):
            raise UsageFault(f"{what} has a packet of interface {iface}, which it does not describe")
        link, snap = self.kinds[iface]
        check_link(link, what)
        length = values[-1]
        n = values[3] if kind == ENHANCED else min(length, snap or length)
        start = struct.calcsize("=" + fields)
        if start + n > len(body):
            raise UsageFault(f"{what} {CUT}")
        return Captured(body[start : start + n], length)


def pcapng(data: bytes, what: str) -> Iterator[Captured]:
    """The packets of a pcapng file."""
    section, at = Section(), 0
    while at < len(data):
        kind = int.from_bytes(data[at : at + 4], "big")
        if kind == SECTION:  # reads the same in both orders
            little = data[at + 8 : at + 12] == struct.pack("<I", ORDER_MAGIC)
            section = Section("<" if little else ">")
        if at + BLOCK_BYTES > len(data):
            raise UsageFault(f"{what} {CUT}")
        kind, n = struct.unpack_from(section.order + "II", data, at)
        if n < BLOCK_BYTES or n % 4 or at + n > len(data):
            raise UsageFault(f"{what} {CUT}")
        body = data[at + 8 : at + n - 4]
        if kind == IFACE and len(body) >= 8:
            link, _, snap = struct.unpack_from(section.order + "HHI", body)
            section.kinds.append((link, snap))
        packet = section.packet(kind, body, what)
        if packet:
            yield packet
        at += n


def captured(data: bytes, what: str) -> Iterator[Captured]:
    """The packets of a file with these bytes. UsageFault, when it is reached: what is wrong with it."""
    if data[:4] == struct.pack(">I", SECTION):
        yield from pcapng(data, what)
        return
    for order in "<>":
        if data[:4] in [struct.pack(order + "I", magic) for magic in PCAP_MAGICS]:
            yield from pcap(data, order, what)
            return
    raise UsageFault(f"{what} is neither pcap nor pcapng: choose a capture file, as of tcpdump -w")
