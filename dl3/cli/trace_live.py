"""'dl3 trace --live': frames as they are received."""

from collections.abc import Iterator
from pathlib import Path

from dl3.control.bpf import compile_filter
from dl3.control.capture import capturing
from dl3.host.interrupts import Held
from dl3.model.pcapng import Packet, PacketReader

MOST_FRAME_BYTES = 9216  # that dl3d traces


def is_received(packet: Packet) -> bool:
    """Whether it came from a wire, and is whole."""
    return packet.reason is None and not packet.is_out and packet.length <= MOST_FRAME_BYTES


def arrivals(socket: Path, port: str | None, expression: str, count: int) -> Iterator[Packet]:
    """The next received frames that match, until there are `count` of them or dl3d ends."""
    program = compile_filter(expression) if expression else None
    reader, left, is_last = PacketReader(), count, False
    with capturing(socket, port=port, program=program, snap=MOST_FRAME_BYTES) as stream:
        while left and not is_last:
            stream.wait()
            with Held():
                chunk = stream.read()
            is_last = chunk.is_last
            for packet in reader.packets(chunk.blocks):
                if left and is_received(packet):
                    left -= 1
                    yield packet
