"""Which packets are a flow, and when it is told of."""

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet

from dl3.export.flows import ACTIVE, FORCED, IDLE, LACK, Flows, key_of
from dl3.export.reasons import FORWARDED
from dl3.export.sample import Sample

PORTS = st.integers(0, 65535)


def _sample(packet: Packet, at_ms: int = 0, verdict: str | None = None) -> Sample:
    """A sample of a frame of port 1."""
    frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet)
    return Sample(1, verdict, at_ms * 10**6, len(frame), frame)


@given(src=PORTS, dst=PORTS, tos=st.integers(0, 255), flags=st.integers(0, 255))
def ports_and_flags_are_those_of_scapy(src: int, dst: int, tos: int, flags: int) -> None:
    for ip in (IP(src="10.0.0.1", dst="10.0.0.2", tos=tos), IPv6(src="::1", dst="::2", tc=tos)):
        packet = ip / TCP(sport=src, dport=dst, flags=flags)
        found = key_of(_sample(Dot1Q(vlan=7) / packet))
        assert found is not None
        key, length, found_flags = found
        assert (key.src_port, key.dst_port, key.protocol, key.tos, key.vlan) == (src, dst, 6, tos, 7)
        assert (length, found_flags, key.port, key.status) == (len(packet), flags, 1, FORWARDED)


def fragments_icmp_and_extension_headers_are_read() -> None:
    rows: list[tuple[Packet, tuple[int, int, int]]] = [
        (IP(frag=100) / UDP(sport=1, dport=2), (17, 0, 0)),
        (IP() / ICMP(type=3, code=1), (1, 0, 0x301)),
        (IPv6() / IPv6ExtHdrHopByHop() / UDP(sport=1, dport=2), (17, 1, 2)),
        (IPv6() / IPv6ExtHdrFragment(offset=0, m=1, nh=17) / UDP(sport=1, dport=2), (17, 1, 2)),
        (IPv6() / IPv6ExtHdrFragment(offset=9, nh=17) / UDP(sport=1, dport=2), (17, 0, 0)),
    ]
    for packet, wanted in rows:
        found = key_of(_sample(packet))
        assert found is not None
        assert (found[0].protocol, found[0].src_port, found[0].dst_port) == wanted


@given(st.binary(max_size=128))
def any_bytes_are_read(frame: bytes) -> None:
    key_of(Sample(1, None, 0, len(frame), frame))
    for kind in (b"\x08\x00", b"\x86\xdd", b"\x81\x00"):
        key_of(Sample(1, None, 0, 14 + len(frame), bytes(12) + kind + frame))


def a_flow_ends_idle_active_for_want_of_space_or_with_the_export() -> None:
    flows = Flows(active_s=60, idle_s=15, most=2)
    first, second, third = (IP(dst=f"10.0.0.{n}") / UDP() for n in (1, 2, 3))
    assert flows.add(_sample(first, 0)) is None
    assert flows.add(_sample(second, 0, "no_route")) is None
    assert flows.add(_sample(second, 50_000, "no_route")) is None
    (idle,) = flows.expire(50_000)
    assert (idle.key.dst[3], idle.packets, idle.end) == (1, 1, IDLE)
    (active,) = flows.expire(60_000)
    assert (active.key.dst[3], active.packets, active.end, active.key.status) == (2, 2, ACTIVE, 131)
    assert (active.first_ms, active.last_ms) == (0, 50_000)
    assert [flows.add(_sample(packet, 70_000)) for packet in (first, second)] == [None, None]
    lacking = flows.add(_sample(third, 70_000))
    assert lacking is not None
    assert (lacking.key.dst[3], lacking.end) == (1, LACK)
    assert flows.add(_sample(ARP(), 70_000)) is None
    assert (len(flows), flows.n_other) == (2, 1)
    assert [flow.end for flow in flows.expire(0, everything=True)] == [FORCED, FORCED]
