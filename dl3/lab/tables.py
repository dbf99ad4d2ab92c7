"""Generated files for measurements: the plugin's input, and routes in the formats of dl3d and l3fwd. Created once and
kept.
"""

import os
import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path

from dl3.lab.prefixes import RECIPES, SEED, Prefix, RouteTable, make
from dl3.model.fault import UsageFault

FRAME_BYTES = 64  # without the FCS
OUR_MAC = bytes.fromhex("020000000001")
THEIR_MAC = bytes.fromhex("0200000000aa")
SOURCE_4, SOURCE_6 = IPv4Address("198.18.0.1"), IPv6Address("2001:2::1")
UDP_PORTS = (1024, 53)
UDP_BYTES_4, UDP_BYTES_6 = 30, 10
VERSION = 3  # part of every file name; incremented when the contents change

LABS_OWN = IPv4Network("198.18.0.0/15")  # used by the lab's links; routes to these networks would misdirect its frames

FIRST_NEXT_HOP_4 = int(IPv4Address("10.1.0.0"))
FIRST_NEXT_HOP_6 = int(IPv6Address("fd00::1:0"))


def ones_sum(data: bytes) -> int:
    """Ones' complement sum of 16-bit words (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def header_4() -> bytes:
    """An IPv4 header with TTL 64; checksum and destination are 0."""
    total_bytes = 20 + UDP_BYTES_4
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, total_bytes, 0, 0, 64, 17, 0, SOURCE_4.packed, bytes(4))


def header_6() -> bytes:
    """An IPv6 header with hop limit 64; destination 0."""
    return struct.pack("!IHBB16s16s", 6 << 28, UDP_BYTES_6, 17, 64, SOURCE_6.packed, bytes(16))


def frame(ethertype: int, header: bytes, udp_bytes: int) -> bytes:
    """The 64-byte frame into which the plugin writes destinations."""
    udp = struct.pack("!4H", *UDP_PORTS, udp_bytes, 0 if ethertype == 0x0800 else 0xFFFF)
    return (OUR_MAC + THEIR_MAC + struct.pack("!H", ethertype) + header + udp).ljust(FRAME_BYTES, b"\0")


def records_4(destinations: Iterable[int]) -> bytes:
    """{be32 destination, be16 header checksum, u16 0} for each destination."""
    base, records = ones_sum(header_4()), bytearray()
    for destination in destinations:
        total = base + (destination >> 16) + (destination & 0xFFFF)
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        records += struct.pack("!IHH", destination, total ^ 0xFFFF, 0)
    return bytes(records)


def destination_table(table: RouteTable) -> bytes:
    """The plugin's input: the frame, then one record per destination."""
    if table.bits == 32:
        return frame(0x0800, header_4(), UDP_BYTES_4) + records_4(table.destinations)
    return frame(0x86DD, header_6(), UDP_BYTES_6) + b"".join(d.to_bytes(16, "big") for d in table.destinations)


@dataclass(frozen=True)
class Tuple4:
    """Addresses and ports of a UDP packet over IPv4."""

    src: int
    dst: int
    src_port: int
    dst_port: int


def record_of_flow(flow: Tuple4) -> bytes:
    """{be32 source, destination, be16 source port, destination port, be16 header checksum, u16 0}."""
    addresses = struct.pack("!2I", flow.src, flow.dst)
    checksum = ones_sum(header_4()[:12] + addresses) ^ 0xFFFF
    return addresses + struct.pack("!4H", flow.src_port, flow.dst_port, checksum, 0)


def table_of_flows(flows: Iterable[Tuple4]) -> bytes:
    """The plugin's input: a frame without a source address, then one record per flow."""
    header = header_4()[:12] + bytes(8)
    return frame(0x0800, header, UDP_BYTES_4) + b"".join(record_of_flow(flow) for flow in flows)


def next_hop(index: int, bits: int) -> str:
    """Address of the next hop with this number."""
    return str(IPv4Address(FIRST_NEXT_HOP_4 + index) if bits == 32 else IPv6Address(FIRST_NEXT_HOP_6 + index))


def next_hop_mac(index: int) -> str:
    """Its MAC address, unique per next hop."""
    return f"02:01:00:00:{index >> 8:02x}:{index & 255:02x}"


def routes_of_dl3d(prefixes: Iterable[Prefix], n_hops: int, port: str) -> str:
    """'PREFIX via ADDRESS dev PORT', next hops uniformly distributed."""
    dice = random.Random(SEED)
    return "".join(f"{p} via {next_hop(dice.randrange(n_hops), p.bits)} dev {port}\n" for p in prefixes)


def routes_of_l3fwd(prefixes: Iterable[Prefix]) -> str:
    """'RPREFIX PORT', shortest first, all to port 1: l3fwd has no next hops, only ports."""
    return "".join(f"R{p} 1\n" for p in sorted(prefixes, key=lambda p: p.length))


def beside_the_lab(prefixes: Iterable[Prefix]) -> list[Prefix]:
    """The prefixes outside the lab's own networks, shortest first, as l3fwd requires."""
    first, last = int(LABS_OWN[0]), int(LABS_OWN[-1])
    return sorted((p for p in prefixes if p.bits != 32 or not first <= p.value <= last), key=lambda p: p.length)


def kept(path: Path, content: Callable[[], bytes]) -> Path:
    """The file, created atomically if missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content())
        draft.replace(path)
    return path


@dataclass(frozen=True)
class TableFiles:
    """The files of one table; each is created on first use."""

    name: str
    folder: Path

    def __post_init__(self) -> None:
        if self.name not in RECIPES:
            raise UsageFault(f"unknown route table '{self.name}'; expected one of {', '.join(RECIPES)}")

    @property
    def bits(self) -> int:
        """32 or 128."""
        return 128 if self.name.startswith("v6") else 32

    def kept(self, suffix: str, content: Callable[[RouteTable], bytes]) -> Path:
        """The file with this suffix, created atomically if missing."""
        return kept(self.folder / f"{self.name}.{VERSION}.{suffix}", lambda: content(make(self.name)))

    def destinations(self) -> Path:
        """The plugin's input."""
        return self.kept("table", destination_table)

    def dl3d_routes(self, n_hops: int, port: str) -> Path:
        """Routes for dl3d over `n_hops` next hops on the port."""
        return self.kept(f"{n_hops}-hops.routes", lambda t: routes_of_dl3d(t.prefixes, n_hops, port).encode())

    def l3fwd_rules(self) -> Path:
        """Rules for l3fwd."""
        return self.kept("rules", lambda t: routes_of_l3fwd(t.prefixes).encode())

    def prefixes(self) -> list[str]:
        """The prefixes, shortest first, without those of the lab's own networks."""
        path = self.kept("prefixes", lambda t: "".join(f"{p}\n" for p in beside_the_lab(t.prefixes)).encode())
        return path.read_text(encoding="ascii").split()
