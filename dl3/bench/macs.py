"""Frames between hosts behind two ports of a bridge: each host sends to its partner, so that a bridge learns all of them."""

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dl3.bench.workplace import TABLES
from dl3.lab.prefixes import SEED
from dl3.lab.tables import UDP_BYTES_4, VERSION, Tuple4, frame, header_4, kept, record_of_flow

VENDOR = bytes.fromhex("02d130")  # first half of all addresses
HALF_BITS = 24
MAC_BYTES = 6
RECORD_BYTES = 16
BYTES_OF_DL3D, BYTES_OF_OVS = 32, 6000  # for each address, rounded up
MIB = 1 << 20
FIRST_HOSTS = 0xC6120001, 0xC6130001  # 198.18.0.1, 198.19.0.1


@dataclass(frozen=True)
class MacSet:
    """So many MAC addresses, half of them behind either port, and 2^bits frames in a round, in which each has a part."""

    number: int
    bits: int

    @property
    def n_pairs(self) -> int:
        """Hosts behind either port."""
        return self.number // 2

    @property
    def table_mib(self) -> int:
        """The plugin's table, in each program."""
        return (RECORD_BYTES << self.bits) // MIB

    @property
    def dl3d_mib(self) -> int:
        """Memory of dl3d's MAC table."""
        return self.number * BYTES_OF_DL3D // MIB + 1

    @property
    def ovs_mib(self) -> int:
        """Memory of Open vSwitch: an address or an OpenFlow flow, and a flow of its datapath, for each."""
        return self.number * BYTES_OF_OVS // MIB + 1


MAC_SETS: Mapping[str, MacSet] = {"4k": MacSet(4096, 16), "1m": MacSet(1_000_000, 20)}  # dl3d has at most 1,000,000


def text_of(mac: bytes) -> str:
    """'02:d1:30:00:00:01'."""
    return mac.hex(":")


@lru_cache(maxsize=2)
def addresses(name: str) -> tuple[bytes, ...]:
    """Addresses behind the first port, then as many behind the second. Identical on every machine and run."""
    halves = random.Random(SEED).sample(range(1 << HALF_BITS), MAC_SETS[name].number)
    return tuple(VENDOR + half.to_bytes(MAC_BYTES - len(VENDOR), "big") for half in halves)


def order(macs: MacSet) -> list[int]:
    """The pair of each frame: all of them in random order, again and again."""
    dice, made, pairs = random.Random(SEED + 1), list[int](), list(range(macs.n_pairs))
    while len(made) < 1 << macs.bits:
        dice.shuffle(pairs)
        made += pairs
    return made[: 1 << macs.bits]


def record(receiver: bytes, sender: bytes, pair: int) -> bytes:
    """{destination, source, be16 source port, destination port}: each pair has ports of its own, as hosts would have."""
    return receiver + sender + struct.pack("!2H", pair >> 8 & 0xFFFF, 1 + (pair & 0xFF))


def the_frame() -> bytes:
    """Without MAC addresses; its IPv4 header is valid."""
    whole = record_of_flow(Tuple4(*FIRST_HOSTS, 0, 0))
    header = header_4()[:10] + whole[12:14] + whole[:8]
    return bytes(2 * MAC_BYTES) + frame(0x0800, header, UDP_BYTES_4)[2 * MAC_BYTES :]


def content(name: str) -> bytes:
    """The plugin's input: from hosts behind the first port to those behind the second; the way back is exchanged."""
    macs, known = MAC_SETS[name], addresses(name)
    records = [record(known[macs.n_pairs + i], known[i], i) for i in range(macs.n_pairs)]
    return the_frame() + b"".join(records[i] for i in order(macs))


def table_of(name: str) -> Path:
    """The file."""
    return kept(TABLES / f"macs-{name}.{VERSION}.table", lambda: content(name))
