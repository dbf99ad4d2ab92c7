"""A sampled frame, with what a collector wants to know of it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dl3.model.pcapng import Packet

DROP = "drop:"
PORT_OF_DROP = re.compile(r"\(port (.*)\)\Z", re.DOTALL)


@dataclass(frozen=True)
class Sample:
    """A received frame, or one that was dropped for a reason."""

    port: int  # number of its input port + 1; 0: not known
    verdict: str | None  # why it was dropped
    time_ns: int  # since 1970
    length: int  # of the frame, without FCS
    frame: bytes  # its start


def samples(packets: Iterator[Packet], ports: Mapping[str, int]) -> Iterator[Sample]:
    """Of what dl3d captured. What Linux gets is neither forwarded nor dropped here: it is among the received frames."""
    for packet in packets:
        if packet.reason is None:
            yield Sample(ports.get(packet.interface, 0), None, packet.time_ns, packet.length, packet.frame)
        elif packet.interface.startswith(DROP):
            found = PORT_OF_DROP.search(packet.reason)
            port = ports.get(found[1], 0) if found else 0
            verdict = packet.interface.removeprefix(DROP)
            yield Sample(port, verdict, packet.time_ns, packet.length, packet.frame)
