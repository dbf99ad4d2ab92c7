"""sFlow version 5: datagrams of flow samples, counter samples and dropped packets."""

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address

from dl3.control.replies import Port
from dl3.export.reasons import reason_of
from dl3.export.sample import Sample

VERSION = 5
FLOW_SAMPLE, COUNTERS_SAMPLE, DISCARDED_PACKET = 1, 2, 5
RAW_HEADER, GENERIC_COUNTERS = 1, 1
ETHERNET, ETHERNET_TYPE, FULL_DUPLEX = 1, 6, 1
FCS_BYTES = 4
UP = 3  # administrative and operational state
UNKNOWN = 0xFFFFFFFF
DATAGRAM_BYTES = 1400
MASK = 0xFFFFFFFF
MBPS = 10**6
COUNTERS = struct.Struct("!IIQIIQIIIIIIQIIIIII")

Address = IPv4Address | IPv6Address


def opaque(data: bytes) -> bytes:
    """XDR: the length, and the bytes filled up to a multiple of 4."""
    return struct.pack("!I", len(data)) + data + bytes(-len(data) % 4)


def record(kind: int, body: bytes) -> bytes:
    """A sample or a record of one."""
    return struct.pack("!I", kind) + opaque(body)


def raw_header(sample: Sample) -> bytes:
    """The start of the frame."""
    head = struct.pack("!III", ETHERNET, sample.length + FCS_BYTES, FCS_BYTES)
    return record(RAW_HEADER, head + opaque(sample.frame))


def counters(port: Port) -> bytes:
    """The counters of a port, with the FCS. Frames to groups are not counted apart."""
    known = [UNKNOWN if value is None else value & MASK for value in (port.rx_missed, port.rx_errors, port.tx_errors)]
    return COUNTERS.pack(
        port.port + 1,
        ETHERNET_TYPE,
        (port.speed_mbps or 0) * MBPS,
        FULL_DUPLEX,
        UP if port.link_up else 1,
        port.rx_bytes + FCS_BYTES * port.rx_packets,
        *(port.rx_packets & MASK, UNKNOWN, UNKNOWN, known[0], known[1], UNKNOWN),
        port.tx_bytes + FCS_BYTES * port.tx_packets,
        *(port.tx_packets & MASK, UNKNOWN, UNKNOWN, UNKNOWN, known[2], UNKNOWN),
    )


class Datagrams:
    """Makes datagrams of one agent. Sequence numbers are of each source."""

    def __init__(self, agent: Address, sample: int, started_s: float) -> None:
        self._agent, self._sample, self._started_s = agent, sample, started_s
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._sequence = 0
        self._of_flows: dict[int, int] = {}
        self._of_counters: dict[int, int] = {}
        self._of_drops: dict[int, int] = {}

    def add(self, sample: Sample, pool: int, missed: int, now_s: float) -> list[bytes]:
        """A frame. `pool`: received on its port so far; `missed`: samples lost. Datagrams that are full."""
        if sample.verdict is None:
            number = self._next(self._of_flows, sample.port)
            head = struct.pack(
                "!IIIIIIII", number, sample.port, self._sample, pool & MASK, missed & MASK, sample.port, 0, 1
            )
            return self._put(record(FLOW_SAMPLE, head + raw_header(sample)), now_s)
        number = self._next(self._of_drops, sample.port)
        reason = reason_of(sample.verdict).sflow
        head = struct.pack("!IIIIIIII", number, 0, sample.port, missed & MASK, sample.port, 0, reason, 1)
        return self._put(record(DISCARDED_PACKET, head + raw_header(sample)), now_s)

    def add_counters(self, ports: Iterable[Port], now_s: float) -> list[bytes]:
        """The counters of all ports. Datagrams that are full."""
        full = []
        for port in ports:
            head = struct.pack("!III", self._next(self._of_counters, port.port + 1), port.port + 1, 1)
            body = record(COUNTERS_SAMPLE, head + record(GENERIC_COUNTERS, counters(port)))
            full += self._put(body, now_s)
        return full

    def rest(self, now_s: float) -> list[bytes]:
        """The datagram that is not full."""
        if not self._waiting:
            return []
        self._sequence += 1
        agent = struct.pack("!I", 1 if self._agent.version == 4 else 2) + self._agent.packed
        uptime_ms = int((now_s - self._started_s) * 1000) & MASK
        head = struct.pack("!I", VERSION) + agent
        head += struct.pack("!IIII", 0, self._sequence & MASK, uptime_ms, len(self._waiting))
        datagram = head + b"".join(self._waiting)
        self._waiting, self._bytes = [], 0
        return [datagram]

    def _put(self, sample: bytes, now_s: float) -> list[bytes]:
        full = self.rest(now_s) if self._bytes + len(sample) > DATAGRAM_BYTES else []
        self._waiting.append(sample)
        self._bytes += len(sample)
        return full

    @staticmethod
    def _next(numbers: dict[int, int], source: int) -> int:
        numbers[source] = numbers.get(source, 0) + 1
        return numbers[source] & MASK
