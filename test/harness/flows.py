"""Many flows through a router, and which next hop each of them takes."""

import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.network import Network
from harness.probes import carries, listening, packet_from
from harness.wire import Wire

TARGETS = {4: "198.18.0.1", 6: "2001:db8:f8::1"}
NUMBER = struct.Struct("!I")
AT_ONCE = 200
PORTS_AT = {4: 34, 6: 54}  # offset of the UDP source port in a frame
QUIET_S = 0.3


@dataclass(frozen=True)
class Book:
    """Where each flow came out: flow number -> names of hosts."""

    ways: dict[int, set[str]]

    def shares(self) -> dict[str, float]:
        """The share of flows that each host received; a flow that came out at two hosts counts at both."""
        counted = Counter(name for names in self.ways.values() for name in names)
        return {name: n / len(self.ways) for name, n in counted.items()}

    def wanderers(self) -> list[int]:
        """Flows that came out at more than one host."""
        return [number for number, names in self.ways.items() if len(names) > 1]


def flow_frame(network: Network, family: int, number: int) -> bytes:
    """A UDP packet of flow `number` from h0, with the number in its last four bytes; the ports identify the flow."""
    return _numbered(packet_from(network["h0"], TARGETS[family]), family, number)


def _numbered(plain: bytes, family: int, number: int) -> bytes:
    frame = bytearray(plain)
    struct.pack_into("!HH", frame, PORTS_AT[family], 1024 + number % 50_000, 2000 + number // 50_000)
    struct.pack_into("!H", frame, PORTS_AT[family] + 6, 0)  # no checksum
    return bytes(frame[:-4]) + NUMBER.pack(number)


def _collect(book: dict[int, set[str]], wires: dict[str, Wire], family: int) -> int:
    """Record what has come out; returns the number of packets."""
    n = 0
    for name, wire in wires.items():
        for frame in wire.drain():
            if carries(frame, TARGETS[family]):
                book.setdefault(NUMBER.unpack(frame[-4:])[0], set()).add(name)
                n += 1
    return n


def _wait(collect: Callable[[], int], wanted: int) -> int:
    """Collect until this many packets came out, or none for a while; returns how many did."""
    came, quiet_since = 0, time.monotonic()
    while came < wanted and time.monotonic() - quiet_since < QUIET_S:
        if more := collect():
            came, quiet_since = came + more, time.monotonic()
    return came


def send_flows(network: Network, family: int, names: Sequence[str], n_flows: int, times: int = 2) -> Book:
    """Send each flow `times` times and record at which hosts its packets come out; all must come out."""
    plain = packet_from(network["h0"], TARGETS[family])
    frames = [_numbered(plain, family, number) for number in range(n_flows)]
    book: dict[int, set[str]] = {}
    wires = {name: network[name].wire() for name in names}
    came = 0
    with listening(network["h0"]) as source, network.through_workers(n_flows * times):
        for first in [*range(0, n_flows, AT_ONCE)] * times:
            for frame in frames[first : first + AT_ONCE]:
                source.send(frame)
            came += _wait(lambda: _collect(book, wires, family), min(AT_ONCE, n_flows - first))
    for wire in wires.values():
        wire.close()
    assert came == n_flows * times, "packets lost on their way"
    return Book(book)
