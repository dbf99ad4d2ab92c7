"""One end of a VXLAN is Linux's, the other the router's: the kernel alone as control, then dl3d. Both do the same.

What goes in at hosts comes out byte for byte; outer headers are read at the peer's end of the cable.
"""

import random
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from harness.fragments import fragments
from harness.frames import ICMP, IP, TCP, UDP, Ether, IPv6, Packet, Raw
from harness.network import FAMILIES, Host, network
from harness.shell import batch, ping
from harness.tcp import carry
from harness.vteps import LOCAL, MTU, OUTER_BYTES, REMOTE, SOURCE_PORTS, UDP_PORT, VNI, Kind, Outer, Vteps
from harness.wired import FIT_THE_RING
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6ExtHdrFragment
from scapy.layers.vxlan import VXLAN

MANY = 5
NOBODY = {4: "198.18.0.1", 6: "2001:db8:f8::1"}  # who gets packets to a peer's MAC address that it does not answer
MAGIC = b"from end to end!"
TOO_BIG = 4  # code of ICMP's type 3
KINDS = [
    Kind("dl3d", 4, True),
    *(
        pytest.param(Kind(router, family, has_checksum), marks=pytest.mark.long)
        for router in ("dl3d", "kernel")
        for family in FAMILIES
        for has_checksum in (True, False)
        if (router, family, has_checksum) != ("dl3d", 4, True)
    ),
]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def bed(request: pytest.FixtureRequest) -> Iterator[Vteps]:
    with Vteps(request.param) as made:
        yield made


def _payload(number: int, n_bytes: int = 40) -> bytes:
    return MAGIC + struct.pack("!I", number) + random.Random(number).randbytes(n_bytes)


def _is_ours(frame: bytes) -> bool:
    return MAGIC in frame


def _ip(family: int, source: str, to: str, tos: int = 0, **more: Any) -> Packet:
    return IPv6(src=source, dst=to, tc=tos) if family == 6 else IP(src=source, dst=to, tos=tos, **more)


def _to_nobody(bed: Vteps, family: int, rest: Packet, **fields: Any) -> bytes:
    """A frame from h0 to the peer."""
    head = _ip(family, bed.h0.address(family), NOBODY[family], **fields)
    return bytes(Ether(src=bed.h0.mac, dst=bed.peer.mac) / head / rest)


def _from_peer(bed: Vteps, frame: bytes, tos: int = 0, **udp: Any) -> Packet:
    """A frame in VXLAN as the peer sends it to the router, without the Ethernet header."""
    family = bed.kind.family
    sums = {} if bed.kind.has_checksum else {"chksum": 0}
    head = _ip(family, REMOTE[family], LOCAL[family], tos) / UDP(**({"sport": 40001, "dport": UDP_PORT} | sums | udp))
    return head / VXLAN(vni=VNI) / Raw(frame)


def _send_outer(bed: Vteps, *packets: bytes) -> None:
    link = bytes(Ether(src=bed.underlay.mac, dst=bed.port_mac(1), type=0x86DD if bed.kind.family == 6 else 0x800))
    for packet in packets:
        bed.wires["outer"].send(link + packet)


def _to_h0(bed: Vteps, number: int, tos: int = 0, family: int = 4) -> bytes:
    head = _ip(family, NOBODY[family], bed.h0.address(family), tos)
    frame = Ether(src=bed.peer.mac, dst=bed.h0.mac) / head / UDP(sport=1024, dport=9) / Raw(_payload(number))
    return bytes(frame)


def _outers(bed: Vteps, n: int) -> list[Outer]:
    found = bed.gather("outer", lambda frame: _is_ours(frame) and Outer.of(frame) is not None, n)
    return [one for one in map(Outer.of, found) if one]


def hosts_reach_each_other(bed: Vteps) -> None:
    for source in (bed.h0, bed.out):
        for family in FAMILIES:
            bed.meet(source, bed.peer, family)
            with bed.counted(workers=2 * MANY):
                assert ping(source.namespace, bed.peer.address(family), count=MANY).received == MANY


def bytes_of_tcp_arrive_whole(bed: Vteps, is_long: bool) -> None:
    n_bytes = 100_000_000 if is_long else 1_000_000
    ways = [(bed.h0, bed.peer), (bed.peer, bed.out)]
    for source, target in ways if not is_long else [*ways, *((target, source) for source, target in ways)]:
        for family in FAMILIES:
            with bed.counted(workers=n_bytes // MTU):
                carry(source.namespace, target.namespace, target.address(family), n_bytes)


def _flow(bed: Vteps, number: int) -> bytes:
    """A packet of one of many flows."""
    kind, family = (UDP, TCP)[number % 2], FAMILIES[number // 2 % 2]
    head = kind(sport=1024 + number % 101, dport=1024 + number // 101)
    return _to_nobody(bed, family, head / Raw(_payload(number)))


def each_flow_keeps_its_source_port_and_flows_are_spread(bed: Vteps, is_long: bool) -> None:
    n_flows = 10_000 if is_long else 500
    frames = [_flow(bed, number) for number in range(n_flows)]
    ports: dict[bytes, set[int]] = {frame: set() for frame in frames}
    bed.drain()
    for turn in range(2):
        random.Random(turn).shuffle(frames)
        for start in range(0, n_flows, FIT_THE_RING):
            some = frames[start : start + FIT_THE_RING]
            with bed.counted(workers=len(some)):
                for frame in some:
                    bed.wires["h0"].send(frame)
                found = _outers(bed, len(some))
            assert sorted(one.inner for one in found) == sorted(some)
            assert {one.has_checksum for one in found} == {bed.kind.has_checksum}
            for one in found:
                ports[one.inner].add(one.source_port)
    assert {len(found) for found in ports.values()} == {1}
    chosen = {port for found in ports.values() for port in found}
    assert chosen <= set(SOURCE_PORTS)
    share = 0.95 if bed.kind.router == "dl3d" else 0.5  # Linux's hash spreads less
    by_chance = len(SOURCE_PORTS) * (1 - (1 - 1 / len(SOURCE_PORTS)) ** n_flows)
    assert len(chosen) > share * by_chance


def _is_answer(frame: bytes, sources: list[str], mtu: int) -> bool:
    """Whether one of these addresses says that a packet was too long."""
    packet = Ether(frame)
    if ICMPv6PacketTooBig in packet:
        return packet[IPv6].src in sources and bool(packet[ICMPv6PacketTooBig].mtu == mtu)
    if ICMP not in packet or (packet[ICMP].type, packet[ICMP].code) != (3, TOO_BIG):
        return False
    return packet[IP].src in sources and bool(packet[ICMP].nexthopmtu == mtu)


def _long(bed: Vteps, source: Host, family: int, n_bytes: int, **fields: Any) -> bytes:
    """A packet of this length to the peer, in a frame."""
    head = _ip(family, source.address(family), bed.peer.address(family), **fields) / UDP(sport=1024, dport=9)
    to = bed.peer.mac if source == bed.h0 else bed.port_mac(2)
    return bytes(Ether(src=source.mac, dst=to) / head / Raw(_payload(n_bytes, n_bytes - len(head) - 20)))


def _room(bed: Vteps, mtu: int = MTU) -> int:
    return mtu - OUTER_BYTES[bed.kind.family]


def _packets_up_to(bed: Vteps, room: int) -> None:
    """What has just enough room passes, what is one byte longer is answered inside, by whom it was for.

    The router remembers what was answered to packets that it routes, and then answers itself.
    """
    for source in (bed.h0, bed.out):
        for family in FAMILIES:
            more = {"flags": "DF"} if family == 4 else {}
            wire = bed.wires[source.name]
            sources = [bed.peer.address(family)] + [network(family, 2, 1)] * (source == bed.out)
            bed.drain()
            wire.send(_long(bed, source, family, room + 1, **more))
            bed.gather(source.name, partial(_is_answer, sources=sources, mtu=room), 1)
            with bed.counted(workers=1):
                wire.send(_long(bed, source, family, room, **more))
                (out,) = bed.gather("peer", _is_ours, 1)
            assert len(out) == room + 14


@pytest.mark.parametrize("df", ["unset", "set", "inherit"])
def packets_that_are_too_long_are_answered_inside(bed: Vteps, df: str) -> None:
    with bed.set_to(f"df {df}", "df unset"):
        _packets_up_to(bed, _room(bed))
    bed.drain()


def the_length_that_is_answered_is_that_of_the_underlay(bed: Vteps) -> None:
    batch(bed.router.namespace, ["link set p1 mtu 1400"])
    bed.router.settle()
    _packets_up_to(bed, _room(bed, 1400))
    batch(bed.router.namespace, [f"link set p1 mtu {MTU}"])
    bed.router.settle()


@pytest.mark.parametrize("df", ["unset", "set", "inherit"])
def packets_that_may_be_fragmented_are_so_by_linux_alone(bed: Vteps, df: str) -> None:
    """Outside, in IPv4 only, and not if the device forbids it: they are lost then."""
    mark = _long(bed, bed.h0, 4, MTU, flags="DF")
    with bed.set_to(f"df {df}", "df unset"):
        bed.drain()
        with bed.counted(linux=2):
            whole = _long(bed, bed.h0, 4, MTU)
            for frame in (whole, mark):  # Linux has them in this order
                bed.wires["h0"].send(frame)
            bed.gather("h0", partial(_is_answer, sources=[bed.peer.address(4)], mtu=_room(bed)), 1)
        if df != "set" and bed.kind.family == 4:
            assert bed.gather("peer", _is_ours, 1) == [whole]
        _send_marks(bed)
        assert not [one for one in bed.gather("peer", _is_ours, 1) if len(one) > 1000]


def _send_marks(bed: Vteps) -> None:
    bed.wires["h0"].send(_to_nobody(bed, 4, UDP(sport=1024, dport=9) / Raw(_payload(0))))


def _has_df(bed: Vteps, df: str, family: int, is_inner: bool) -> bool:
    """Of the outer header: to `inherit` it, IPv6 packets are never fragmented on their way."""
    if bed.kind.family == 6 or df == "unset":
        return False
    return df == "set" or family == 6 or is_inner


@pytest.mark.parametrize("df", ["unset", "set", "inherit"])
def the_outer_header_says_whether_it_may_be_fragmented(bed: Vteps, df: str) -> None:
    kinds = [(4, False), (4, True), (6, False)]
    with bed.set_to(f"df {df}", "df unset"):
        for number, (family, is_inner) in enumerate(kinds):
            more = {"flags": "DF"} if is_inner else {}
            bed.drain()
            with bed.counted(workers=1):
                bed.wires["h0"].send(_to_nobody(bed, family, UDP(dport=9) / Raw(_payload(number)), **more))
                (found,) = _outers(bed, 1)
            assert found.has_df == _has_df(bed, df, family, is_inner), (family, is_inner)


TOS = [dscp << 2 | ecn for dscp in (0, 0x2E) for ecn in range(4)]


@pytest.mark.parametrize("words", ["tos 0", "tos inherit"])
def ecn_goes_into_the_outer_header(bed: Vteps, words: str) -> None:
    """RFC 6040, 4.1, but as Linux does: what has met congestion leaves as if it had not."""
    with bed.set_to(words, "tos 0"):
        for family in FAMILIES:
            sent = [_to_nobody(bed, family, UDP(dport=9) / Raw(_payload(tos)), tos=tos) for tos in TOS]
            bed.drain()
            with bed.counted(workers=len(TOS)):
                for frame in sent:
                    bed.wires["h0"].send(frame)
                found = {one.inner: one.tos for one in _outers(bed, len(TOS))}
            wanted = [(tos & 0xFC if "inherit" in words else 0) | (2 if tos & 3 == 3 else tos & 3) for tos in TOS]
            assert [found.get(frame) for frame in sent] == wanted


def _taken_out(tos: int, outer_ecn: int) -> int | None:
    """The inner TOS; None: dropped (RFC 6040, 4.2, as Linux has it)."""
    if tos & 3 == 0:
        return None if outer_ecn == 3 else tos
    if outer_ecn == 3:
        return tos | 3
    return tos ^ 3 if (tos & 3, outer_ecn) == (2, 1) else tos


def ecn_comes_out_of_the_outer_header(bed: Vteps) -> None:
    pairs = [(tos, ecn) for tos in TOS for ecn in range(4)]
    for family in FAMILIES:
        bed.drain()
        for number, (tos, ecn) in enumerate(pairs):
            _send_outer(bed, bytes(_from_peer(bed, _to_h0(bed, number, tos, family), tos=ecn)))
        outs = [_taken_out(*pair) for pair in pairs]
        wanted = [_to_h0(bed, number, tos, family) for number, tos in enumerate(outs) if tos is not None]
        assert bed.gather("h0", _is_ours, len(wanted)) == wanted


def _set_mtu_of_hosts(bed: Vteps, mtu: int) -> None:
    for host in (bed.h0, bed.out, bed.peer):
        host.ip("link", "set", host.device, "mtu", str(mtu))


def fragments_of_hosts_pass_unchanged(bed: Vteps) -> None:
    _set_mtu_of_hosts(bed, _room(bed))
    for source in (bed.h0, bed.out):
        for family in FAMILIES:
            with bed.counted(workers=2 * MANY * 3):
                assert ping(source.namespace, bed.peer.address(family), "-s", "4000", count=MANY).received == MANY
    _set_mtu_of_hosts(bed, MTU)
    whole = bytes(IP(src=bed.h0.address(4), dst=NOBODY[4], id=7) / UDP(dport=9) / Raw(_payload(1, 2500)))
    link = bytes(Ether(src=bed.h0.mac, dst=bed.peer.mac, type=0x800))
    sent = [link + one for one in fragments(whole, 1000)]
    head = IPv6(src=bed.h0.address(6), dst=NOBODY[6])
    for offset in (0, 1000):
        body = _payload(offset, 980)
        rest = IPv6ExtHdrFragment(nh=17, offset=offset // 8, m=int(not offset), id=7) / Raw(body)
        sent.append(bytes(Ether(src=bed.h0.mac, dst=bed.peer.mac) / head / rest))
    bed.drain()
    with bed.counted(workers=len(sent)):
        for frame in sent:
            bed.wires["h0"].send(frame)
        found: list[bytes] = bed.gather("peer", lambda frame: frame in sent, len(sent))
    assert sorted(found) == sorted(sent)


def _outer_fragments(bed: Vteps, packet: Packet) -> list[bytes]:
    if bed.kind.family == 4:
        return fragments(bytes(packet), 600)
    whole = bytes(packet)
    head, rest, made = IPv6(whole[:40]), whole[40:], []
    for start in range(0, len(rest), 560):
        piece = IPv6ExtHdrFragment(nh=17, offset=start // 8, m=int(start + 560 < len(rest)), id=9)
        made.append(bytes(IPv6(src=head.src, dst=head.dst) / piece / Raw(rest[start : start + 560])))
    return made


def outer_fragments_are_put_together_by_linux(bed: Vteps) -> None:
    head = IP(src=NOBODY[4], dst=bed.h0.address(4)) / UDP(sport=1024, dport=9) / Raw(_payload(3, 1300))
    frame = bytes(Ether(src=bed.peer.mac, dst=bed.h0.mac) / head)
    pieces = _outer_fragments(bed, _from_peer(bed, frame))
    assert len(pieces) == 3
    bed.drain()
    with bed.counted(linux=len(pieces)):
        _send_outer(bed, *pieces)
        assert bed.gather("h0", _is_ours, 1) == [frame]


def packets_with_wrong_sums_are_dropped(bed: Vteps) -> None:
    """No sum is a right one, but over IPv6 only where the device says so."""
    bed.drain()
    accepts_none = bed.kind.family == 4 or not bed.kind.has_checksum
    right = [_to_h0(bed, number) for number in range(3)]
    packets = [bytes(_from_peer(bed, right[0], chksum=0)), bytes(_from_peer(bed, _to_h0(bed, 9), chksum=0xBAD))]
    _send_outer(bed, *packets, *(bytes(_from_peer(bed, one)) for one in right[1:]))
    wanted = right if accepts_none else right[1:]
    assert bed.gather("h0", _is_ours, len(wanted)) == wanted
