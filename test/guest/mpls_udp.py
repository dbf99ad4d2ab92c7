"""MPLS over UDP between dl3d and Linux: what hosts on both sides notice of it. Runs in a guest."""

import contextlib
import socket
import struct
from collections import defaultdict
from collections.abc import Iterator

import pytest
from harness.mpls_ends import FAMILIES, WAYS, MplsEnds, Way
from harness.shell import ping
from harness.tcp import carry
from harness.wire import Wire, wait_until

from dl3.lab.namespace import End, Namespace

SHORT, LONG = 4_000_000, 100_000_000  # bytes
PATIENCE_S = 900.0
OUTER_PORT = struct.pack("!H", 6635)
LABEL_BYTES = 4
ANSWERED = 8  # bytes of ICMP in front of what ping sends
DATA = bytes(32)  # Linux takes nothing out of ip6tnl that is shorter than 40 bytes with its label
FLOWS, EACH = 10_000, 100
BINS, LEAST, MOST = 64, 33.8, 103.4  # chi-square with 63 degrees of freedom: each missed with a probability of 0.1 %
BY_WAY = [(way, family) for way in WAYS for family in FAMILIES]


@pytest.fixture(scope="module")
def ends() -> Iterator[MplsEnds]:
    with contextlib.closing(MplsEnds()) as made:
        yield made
        made.router.check()


def _is_answered(ends: MplsEnds, way: Way, family: int, n_bytes: int, side: str = "a") -> bool:
    """Whether a ping of a packet of this length with DF comes back."""
    header = (20 if family == 4 else 40) + ANSWERED
    other = "b" if side == "a" else "a"
    return bool(ping(ends[side], way.host(other, family), "-M", "do", "-s", str(n_bytes - header), count=1).received)


@pytest.mark.parametrize(("name", "family"), BY_WAY)
def hosts_reach_each_other(ends: MplsEnds, name: str, family: int) -> None:
    way = WAYS[name]
    before = ends.counters()[way.device]
    for n_bytes in (100, way.mtu):
        for side in ("a", "b"):
            assert _is_answered(ends, way, family, n_bytes, side), f"{n_bytes} from {side}: {ends.router.account()}"
    after = ends.counters()[way.device]
    assert [now - then for now, then in zip(after, before, strict=True)] == [4, 4], "workers carried them, not Linux"


@pytest.mark.parametrize(("name", "family"), BY_WAY)
def long_packets_are_answered_inside(ends: MplsEnds, name: str, family: int) -> None:
    way = WAYS[name]
    ends.forget()
    assert not _is_answered(ends, way, family, way.mtu + 1)
    wait_until(lambda: ends.learnt_mtu(way, family) == way.mtu, "a had learnt the MTU")
    assert _is_answered(ends, way, family, way.mtu)


@pytest.mark.parametrize(("name", "family"), BY_WAY)
def a_lower_mtu_of_the_device_is_followed(ends: MplsEnds, name: str, family: int) -> None:
    way, lower = WAYS[name], 1400
    before = ends.router.namespace.ip("-o", "link", "show", way.device).split(" mtu ")[1].split()[0]

    def is_learnt() -> bool:
        _is_answered(ends, way, family, lower)
        return ends.learnt_mtu(way, family) == lower - LABEL_BYTES

    try:
        ends.router.namespace.ip("link", "set", way.device, "mtu", str(lower))
        wait_until(is_learnt, "a had learnt the MTU of the device")
        assert _is_answered(ends, way, family, lower - LABEL_BYTES)
    finally:
        ends.router.namespace.ip("link", "set", way.device, "mtu", before)
        ends.forget()


def _datagram(ends: MplsEnds, way: Way, family: int, n_bytes: int) -> None:
    """One of UDP, from a to b, whole."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    data = bytes(range(256)) * (n_bytes // 256)
    with ends["b"].entered():
        receiver = socket.socket(kind, socket.SOCK_DGRAM)
    with ends["a"].entered():
        sender = socket.socket(kind, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.settimeout(60.0)
        receiver.bind((way.host("b", family), 0))
        sender.sendto(data, receiver.getsockname()[:2])
        assert receiver.recv(1 << 16) == data


@contextlib.contextmanager
def _mtu_of_a(ends: MplsEnds, mtu: int) -> Iterator[None]:
    ends["a"].ip("link", "set", "a0", "mtu", str(mtu))
    try:
        yield
    finally:
        ends["a"].ip("link", "set", "a0", "mtu", "1500")


def _flow(packet: bytes) -> bytes:
    """The ports of a UDP packet, which tell flows apart here; b"" for fragments."""
    if packet[0] >> 4 == 6:
        return packet[40:44] if packet[6] == socket.IPPROTO_UDP else b""
    return b"" if packet[6] & 0x3F or packet[7] else packet[20:24]


def _outer_ports(wire: Wire) -> dict[bytes, set[int]]:
    """Source ports of the packets of MPLS over UDP that have arrived, by their flow."""
    found: dict[bytes, set[int]] = defaultdict(set)
    for frame in wire.drain():
        at = {b"\x08\x00": 34, b"\x86\xdd": 54}.get(frame[12:14], len(frame))
        if frame[at + 2 : at + 4] == OUTER_PORT:
            found[_flow(frame[at + 12 :])].add(int.from_bytes(frame[at : at + 2], "big"))
    return found


@pytest.mark.parametrize(("name", "family"), BY_WAY)
def datagrams_arrive_in_fragments(ends: MplsEnds, name: str, family: int) -> None:
    way = WAYS[name]
    with contextlib.closing(Wire(End(ends["mid"], "m0", ""))) as wire:
        with _mtu_of_a(ends, 1300):
            before = ends.counters()[way.device][0]
            _datagram(ends, way, family, 8192)
            assert ends.counters()[way.device][0] - before == 7, "workers carried each fragment"
        if name != "gre":
            (ports,) = _outer_ports(wire).values()
            assert len(ports) == 1, "all fragments have one port"
    ends.forget()
    if family == 6:  # hosts cut packets of IPv6 themselves, when they know to what length
        assert not _is_answered(ends, way, family, way.mtu + 1)
    _datagram(ends, way, family, 8192)


def fragments_of_outer_packets_are_put_together(ends: MplsEnds) -> None:
    """By Linux, which has them as they came."""
    way = WAYS["fou"]
    near, far = "10.1.1.0/24", ends["far"]
    far.ip("route", "change", near, "via", "10.1.2.1", "mtu", "1300")
    try:
        before = ends.counters()[way.device][1]
        for family in FAMILIES:
            assert _is_answered(ends, way, family, way.mtu)
        assert ends.counters()[way.device][1] == before
    finally:
        far.ip("route", "change", near, "via", "10.1.2.1")


@pytest.mark.parametrize(("name", "family"), BY_WAY)
def streams_arrive_whole(ends: MplsEnds, name: str, family: int) -> None:
    way = WAYS[name]
    ends.forget()
    before = ends.counters()[way.device]
    n_bytes = LONG if (name, family) == ("fou", 4) else SHORT
    carry(ends["a"], ends["b"], way.host("b", family), n_bytes, PATIENCE_S)
    carry(ends["b"], ends["a"], way.host("a", family), n_bytes, PATIENCE_S)
    after = ends.counters()[way.device]
    assert min(now - then for now, then in zip(after, before, strict=True)) > n_bytes // 1500


def _sender_of_next(receiver: socket.socket) -> object:
    """None: nothing arrives."""
    try:
        return receiver.recvfrom(64)[1]
    except TimeoutError:
        return None


class Flows:
    """Of UDP from a to b: EACH source ports to EACH destination ports."""

    def __init__(self, ends: MplsEnds, way: Way) -> None:
        self._ends, self._to = ends, way.host("b", 4)
        self._receivers = self._opened(ends["b"], self._to)
        self._senders = self._opened(ends["a"], way.host("a", 4))

    @staticmethod
    def _opened(namespace: Namespace, address: str) -> list[socket.socket]:
        with namespace.entered():
            made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(EACH)]
        for one in made:
            one.bind((address, 0))
            one.settimeout(60.0)
        return made

    def send(self) -> None:
        """One packet of each flow; all arrive."""
        ports = [one.getsockname()[1] for one in self._receivers]
        for sender in self._senders:
            for port in ports:
                sender.sendto(DATA, (self._to, port))
            mine = sender.getsockname()
            for receiver in self._receivers:
                assert _sender_of_next(receiver) == mine, f"a packet is lost: {self._ends.router.account()}"

    def close(self) -> None:
        """Close all sockets."""
        for one in (*self._receivers, *self._senders):
            one.close()


@pytest.mark.parametrize("name", ["fou", "fou6"])
def ten_thousand_flows_have_uniform_ports(ends: MplsEnds, name: str) -> None:
    ports: dict[bytes, set[int]] = defaultdict(set)
    with (
        contextlib.closing(Wire(End(ends["mid"], "m0", ""))) as wire,
        contextlib.closing(Flows(ends, WAYS[name])) as flows,
    ):
        for _ in range(2):
            flows.send()
            for flow, found in _outer_ports(wire).items():
                ports[flow] |= found
    assert len(ports) == FLOWS
    assert all(len(found) == 1 for found in ports.values()), "a flow keeps its port"
    bins = [0] * BINS
    for found in ports.values():
        (port,) = found
        assert port >= 49152
        bins[(port - 49152) * BINS // 16384] += 1
    chi = sum((n - FLOWS / BINS) ** 2 / (FLOWS / BINS) for n in bins)
    assert LEAST < chi < MOST, f"chi-square {chi:.1f}: {bins}"
