"""Many flows through a router, and which next hop each of them takes."""

import contextlib
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.network import BENCHMARK, Network
from harness.probes import ETHERNET_BYTES, carries, listening, packet_from, wait_reached
from harness.wire import Wire

TARGETS = {4: "198.18.0.1", 6: "2001:db8:f8::1"}
NUMBER = struct.Struct("!I")
AT_ONCE = 200
PORTS_AT = {4: 34, 6: 54}  # offset of the UDP source port in a frame
HOSTS_AT = {4: 27, 6: 36}  # offset of two bytes of the source address
SUM_AT, IP4_WORDS = 24, struct.Struct("!10H")
PATIENCE_S = 20.0  # of a machine whose cores are taken
Vary = Callable[[bytes, int, int], bytes]  # the packet of a flow, from any packet, the family and the flow's number


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
    return by_ports(packet_from(network["h0"], TARGETS[family]), family, number)


def by_ports(plain: bytes, family: int, number: int) -> bytes:
    """Flows between one pair of hosts, which differ in their ports."""
    frame = bytearray(plain)
    struct.pack_into("!HH", frame, PORTS_AT[family], 1024 + number % 50_000, 2000 + number // 50_000)
    struct.pack_into("!H", frame, PORTS_AT[family] + 6, 0)  # no checksum
    return bytes(frame[:-4]) + NUMBER.pack(number)


def by_hosts(plain: bytes, family: int, number: int) -> bytes:
    """Flows from different hosts, with the same ports."""
    frame = bytearray(plain)
    struct.pack_into("!H", frame, HOSTS_AT[family], number)
    if family == 4:
        struct.pack_into("!H", frame, SUM_AT, 0)
        total = sum(IP4_WORDS.unpack_from(frame, ETHERNET_BYTES))
        struct.pack_into("!H", frame, SUM_AT, 0xFFFF - (total - 1) % 0xFFFF - 1)
    return bytes(frame[:-4]) + NUMBER.pack(number)


def by_labels(plain: bytes, _family: int, number: int) -> bytes:
    """Flows between one pair of hosts, which differ in their IPv6 flow labels."""
    frame = bytearray(plain)
    struct.pack_into("!H", frame, ETHERNET_BYTES + 2, number)
    return bytes(frame[:-4]) + NUMBER.pack(number)


def hop_words(network: Network, family: int, name: str) -> str:
    """The next hop to a host, as in `ip route`."""
    return f"via {network[name].address(family)} dev p{network[name].link}"


def spread(network: Network, family: int, names: Sequence[str], weights: Sequence[int]) -> None:
    """A route with several next hops; the router has resolved its neighbours."""
    for name in names:
        wait_reached(network, network[name].address(family))
    hops = [
        f"nexthop {hop_words(network, family, name)} weight {weight}"
        for name, weight in zip(names, weights, strict=True)
    ]
    network.ip(f"route add {BENCHMARK[family]} {' '.join(hops)}")


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
    """Collect until this many packets came out, or none for so long that the rest is lost; returns how many did."""
    came, quiet_since = 0, time.monotonic()
    while came < wanted and time.monotonic() - quiet_since < PATIENCE_S:
        if more := collect():
            came, quiet_since = came + more, time.monotonic()
    return came


@dataclass(frozen=True)
class Traffic:
    """How flows are sent: each `times` times, through workers or through Linux."""

    times: int = 2
    vary: Vary = by_ports
    by_workers: bool = True


EACH_TWICE = Traffic()
EACH_ONCE = Traffic(times=1)


def send_flows(
    network: Network, family: int, names: Sequence[str], n_flows: int, traffic: Traffic = EACH_TWICE
) -> Book:
    """Send flows and record at which hosts their packets come out; all must come out."""
    plain = packet_from(network["h0"], TARGETS[family])
    frames = [traffic.vary(plain, family, number) for number in range(n_flows)]
    book: dict[int, set[str]] = {}
    n_packets = n_flows * traffic.times
    came = 0
    with contextlib.ExitStack() as stack:
        wires: dict[str, Wire] = {name: stack.enter_context(listening(network[name])) for name in names}
        source = stack.enter_context(listening(network["h0"]))
        stack.enter_context(network.through_workers(n_packets if traffic.by_workers else 0))
        for first in [*range(0, n_flows, AT_ONCE)] * traffic.times:
            for frame in frames[first : first + AT_ONCE]:
                source.send(frame)
            came += _wait(lambda: _collect(book, wires, family), min(AT_ONCE, n_flows - first))
    assert came == n_packets, "packets lost on their way"
    return Book(book)
