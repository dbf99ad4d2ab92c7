"""Blocks of pcapng as dl3d writes them."""

import struct

from dl3.model.pcapng import Packet, PacketReader, whole

FRAME = bytes(range(61))


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    n = len(body) + 12
    return struct.pack("=II", kind, n) + body + struct.pack("=I", n)


def _iface(name: bytes) -> bytes:
    return _block(1, struct.pack("=HHI", 1, 0, 65535) + _option(2, name) + _option(0, b""))


def _packet(iface: int, flags: int, comment: bytes = b"") -> bytes:
    more = _option(1, comment) if comment else b""
    head = struct.pack("=IIIII", iface, 1, 2, len(FRAME), 1500)
    padded = FRAME + bytes(-len(FRAME) % 4)
    return _block(6, head + padded + more + _option(2, struct.pack("=I", flags)) + _option(0, b""))


FILE = _iface(b"east") + _iface(b"drop:no_route") + _packet(0, 2) + _packet(1, 1, b"no route")


def reads_packets_with_their_interfaces() -> None:
    reader, cut = PacketReader(), len(_iface(b"east"))
    assert list(reader.packets(FILE[:cut])) == []
    assert list(reader.packets(FILE[cut:])) == [
        Packet("east", True, (1 << 32) + 2, 1500, FRAME, None),
        Packet("drop:no_route", False, (1 << 32) + 2, 1500, FRAME, "no route"),
    ]


def finds_the_end_of_the_last_whole_block() -> None:
    ends = [len(FILE), len(FILE) - len(_packet(1, 1, b"no route"))]
    assert whole(FILE) == (ends[0], 2)
    assert whole(FILE[:-1]) == (ends[1], 1)
    assert whole(FILE[: ends[1] + 11]) == (ends[1], 1)
    assert whole(b"") == (0, 0)
    assert whole(struct.pack("=II", 6, 0) * 4) == (0, 0)
