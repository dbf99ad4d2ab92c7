"""IPv4 packets longer than the MTU of their way; the router is the kernel, then dl3d.

Both send the same fragments, byte for byte, in the same order. Workers make them, except of packets with options.
"""

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from harness.fragments import fragments
from harness.frames import ICMP, IP, UDP, Ether, IPv6, Packet, Raw
from harness.network import Network
from harness.probes import ETHERNET_BYTES, PATIENCE_S, arrives, listening, packet_from, vanishes, wait_reached
from harness.router import router_mac
from harness.shell import ping

MTU = 600
LENGTHS = (600, 601, 602, 607, 608, 609, 1175, 1176, 1177, 1181, 1183, 1184, 1185, 1400, 1499, 1500)
MORE, DONT = "MF", "DF"
# The first two have no room left, so that routers do not change them.
RECORD_ROUTE = bytes([7, 7, 8, 10, 9, 9, 9])
TIMESTAMP = bytes([68, 12, 13, 3, 10, 9, 9, 9, 0, 0, 0, 1])
SECURITY = bytes([130, 11, *[0] * 9])


@pytest.fixture(params=[MTU, 599, 68], ids=lambda mtu: f"mtu{mtu}")
def narrow(network: Network, request: pytest.FixtureRequest) -> Iterator[Network]:
    """The router's p1 has a small MTU; h1 receives everything."""
    made: int = request.param
    wait_reached(network, network["h1"].address(4))
    network.ip(f"link set p1 mtu {made}")
    yield network
    network.ip("link set p1 mtu 1500")


@pytest.fixture
def small(network: Network) -> Iterator[Network]:
    """The same with one MTU."""
    wait_reached(network, network["h1"].address(4))
    network.ip(f"link set p1 mtu {MTU}")
    yield network
    network.ip("link set p1 mtu 1500")


def _mtu(network: Network) -> int:
    return int(network.the_router.namespace.ip("link", "show", "dev", "p1").split(" mtu ")[1].split()[0])


def _packet(network: Network, length: int, **fields: Any) -> Packet:
    """A packet of `length` bytes from h0 to h1 whose payload differs everywhere."""
    header: dict[str, Any] = {
        "src": network["h0"].address(4),
        "dst": network["h1"].address(4),
        "ttl": 64,
        "id": 0xBEEF,
        "proto": 17,
    }
    packet = IP(**(header | fields))
    room = length - len(bytes(packet))
    return packet / Raw(random.Random(length).randbytes(room))


def _frame(network: Network, packet: Packet) -> bytes:
    return bytes(Ether(src=network["h0"].mac, dst=router_mac(0)) / packet)


def _expected(packet: Packet, mtu: int) -> list[bytes]:
    """The packets that h1 receives."""
    sent = IP(bytes(packet))
    sent.ttl -= 1
    del sent.chksum
    return fragments(bytes(sent), mtu)


def _collected(network: Network, frames: list[bytes], n: int) -> list[bytes]:
    """Send frames; the next `n` IPv4 packets that are not ICMP at h1."""
    made: list[bytes] = []
    with listening(network["h1"]) as out, listening(network["h0"]) as into:
        for frame in frames:
            into.send(frame)
        deadline = time.monotonic() + PATIENCE_S
        while len(made) < n and (left := deadline - time.monotonic()) > 0:
            got = out.receive(left)
            packet = got[ETHERNET_BYTES:] if got and got[12:ETHERNET_BYTES] == b"\x08\x00" else b""
            if packet and packet[9] != 1:
                made.append(packet[: int.from_bytes(packet[2:4], "big")])
    return made


def _check(network: Network, packet: Packet) -> None:
    expected = _expected(packet, _mtu(network))
    made = _collected(network, [_frame(network, packet)], len(expected))
    assert [piece.hex() for piece in made] == [piece.hex() for piece in expected]


def packets_of_all_lengths_are_cut_alike(narrow: Network) -> None:
    with narrow.through_workers(len(LENGTHS)):
        for length in LENGTHS:
            _check(narrow, _packet(narrow, length))


def fragments_are_cut_again(small: Network) -> None:
    with small.through_workers(2 * 5):
        for flags, offset in ((MORE, 0), (MORE, 100), (0, 100), (MORE, 7000), (0, 8100)):
            _check(small, _packet(small, 1300, flags=flags, frag=offset))


def the_reserved_flag_is_lost(small: Network) -> None:
    with small.through_workers(1):
        _check(small, _packet(small, 1300, flags="evil"))


@pytest.mark.parametrize(
    "options",
    [RECORD_ROUTE + b"\0", TIMESTAMP, SECURITY + b"\0", b"\1" + RECORD_ROUTE + SECURITY + b"\1" + TIMESTAMP],
    ids=["not copied", "timestamp", "copied", "mixed"],
)
def options_go_into_the_fragments_that_need_them(small: Network, options: bytes) -> None:
    header = IP(
        src=small["h0"].address(4), dst=small["h1"].address(4), ttl=64, id=7, proto=17, ihl=5 + len(options) // 4
    )
    body = options + random.Random(7).randbytes(1300)
    header.len = 20 + len(body)
    raw = bytearray(bytes(header))
    raw[10:12] = bytes(2)
    whole = bytes(raw) + body
    packet = IP(whole)
    del packet.chksum
    _check(small, IP(bytes(packet)))


def a_packet_that_may_not_be_fragmented_is_answered(small: Network) -> None:
    h0, h1 = small["h0"], small["h1"]
    frame = _frame(small, _packet(small, 1300, flags=DONT))
    assert vanishes(h0, frame, h1, h1.address(4))
    with listening(h0) as into:
        into.send(frame)
        deadline = time.monotonic() + PATIENCE_S
        while (left := deadline - time.monotonic()) > 0:
            got = into.receive(left)
            if got and ICMP in (answer := Ether(got)) and answer[ICMP].type == 3 and answer[ICMP].code == 4:
                assert answer[ICMP].nexthopmtu == MTU
                return
    raise AssertionError("no ICMP message came")


def padding_after_a_long_packet_is_not_part_of_it(small: Network) -> None:
    packet = _packet(small, 1300)
    expected = _expected(packet, MTU)
    with small.through_workers(len(expected)):
        made = _collected(small, [_frame(small, packet) + b"\xee" * 100], len(expected))
    assert made == expected


def short_packets_keep_their_place_between_long_ones(small: Network) -> None:
    """In the order in which they were sent."""
    packets = [_packet(small, length, id=number) for number, length in enumerate([1400, 100, 1300, 700, 90] * 20)]
    expected = [piece for packet in packets for piece in _expected(packet, MTU)]
    with small.through_workers(len(expected)):
        made = _collected(small, [_frame(small, packet) for packet in packets], len(expected))
    assert made == expected


def copies_are_in_the_account(small: Network) -> None:
    if not small.dl3d:
        pytest.skip("the kernel has no such account")
    before = small.dl3d.closed_account()
    _check(small, _packet(small, 1500))
    after = small.dl3d.closed_account().since(before)
    assert after.copied == 2
    assert after.sent == after.received + after.injected + 2 - after.punted - after.dropped


def hosts_put_the_fragments_together(network: Network) -> None:
    """In both directions."""
    h0, h1 = network["h0"], network["h1"].address(4)
    wait_reached(network, h1)
    with network.shrunk(1, "h1"), network.through_workers(6):
        for size in ("1400", "4000"):
            assert ping(h0.namespace, h1, "-M", "dont", "-s", size, count=3).received == 3


def ip6_packets_are_not_fragmented(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    target = h1.address(6)
    wait_reached(network, target)
    with network.shrunk(1, "h1"):
        wait_reached(network, target)
        packet = IPv6(src=h0.address(6), dst=target) / UDP(sport=1, dport=2) / Raw(bytes(1400))
        assert vanishes(h0, _frame(network, packet), h1, target)
        assert arrives(h0, packet_from(h0, target), h1, target)
