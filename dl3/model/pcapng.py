"""The blocks of pcapng files that dl3d writes: as far as is needed to find packets and to print them."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEAD = struct.Struct("=II")
PACKET = struct.Struct("=IIIII")
OPTION = struct.Struct("=HH")
IFACE_BLOCK, PACKET_BLOCK = 1, 6
IFACE_HEAD_BYTES = 8
NAME_OPTION, COMMENT_OPTION, FLAGS_OPTION = 2, 1, 2
OUTBOUND = 2


@dataclass(frozen=True)
class Packet:
    """A captured packet. reason: why it was dropped or punted."""

    interface: str
    is_out: bool
    time_ns: int  # since 1970
    length: int  # of the frame, without FCS
    frame: bytes  # its start
    reason: str | None


def walk(blocks: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The end, type and body of each whole block."""
    at = 0
    while at + HEAD.size <= len(blocks):
        kind, n = HEAD.unpack_from(blocks, at)
        if n < HEAD.size + 4 or at + n > len(blocks):
            return
        yield at + n, kind, blocks[at + HEAD.size : at + n - 4]
        at += n


def whole(blocks: bytes) -> tuple[int, int]:
    """Bytes of the whole blocks at the start, and the number of packets in them."""
    ends = [(end, kind) for end, kind, _ in walk(blocks)]
    return ends[-1][0] if ends else 0, sum(kind == PACKET_BLOCK for _, kind in ends)


def options(body: bytes, at: int) -> dict[int, bytes]:
    """The options of a block from there on."""
    found: dict[int, bytes] = {}
    while at + OPTION.size <= len(body):
        code, n = OPTION.unpack_from(body, at)
        if not code:
            break
        found[code] = body[at + OPTION.size : at + OPTION.size + n]
        at += OPTION.size + (n + 3) // 4 * 4
    return found


class PacketReader:
    """Reads packets from consecutive pieces of a file, each of whole blocks."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def packets(self, blocks: bytes) -> Iterator[Packet]:
        """The packets of the next piece."""
        for _, kind, body in walk(blocks):
            if kind == IFACE_BLOCK:
                self._names.append(options(body, IFACE_HEAD_BYTES).get(NAME_OPTION, b"").decode(errors="replace"))
            elif kind == PACKET_BLOCK:
                yield self._packet(body)

    def _packet(self, body: bytes) -> Packet:
        iface, high, low, captured, length = PACKET.unpack_from(body)
        more = options(body, PACKET.size + (captured + 3) // 4 * 4)
        flags = int.from_bytes(more.get(FLAGS_OPTION, b"")[:4], "little" if struct.pack("=H", 1)[0] else "big")
        comment = more.get(COMMENT_OPTION)
        return Packet(
            self._names[iface],
            flags & 3 == OUTBOUND,
            high << 32 | low,
            length,
            body[PACKET.size : PACKET.size + captured],
            comment.decode(errors="replace") if comment is not None else None,
        )
