"""The frames that dl3gen sends, parsed with scapy: headers, checksums, sizes, flows, timestamps."""

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from harness.answers import THERE, VECTORS, Bench, eal, flood
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet
from scapy.utils import rdpcap

PCAP_HEAD, PCAP_RECORD = 24, 16
SHAPES: dict[str, dict[str, Any]] = {
    "udp": {},
    "tcp": {"protocol": "tcp", "size": 68},
    "udp with a tag": {"vlan": {"id": 5, "priority": 3}, "size": 68},
    "udp in ip6": {"src_ip": "2001:db8:1::1", "dst_ip": "2001:db8:2::1"},
    "tcp in ip6": {"src_ip": "2001:db8:1::1", "dst_ip": "2001:db8:2::1", "protocol": "tcp", "size": 90},
    "tcp in ip6 with a tag": {"dst_ip": "2001:db8:2::1", "protocol": "tcp", "vlan": 4095, "size": 1518},
    "an odd length": {"size": 77, "ttl": 3},
}


def _dump(folder: Path, n: int, code: str = "with vectors", **keys: Any) -> list[Packet]:
    with Bench(folder, [f"{THERE} dump={n}"], eal=eal(*VECTORS[code])) as bench:
        reported, _ = bench.run_one(flood(frames=n, **keys))
        assert reported.sent == reported.received == n
        return list(rdpcap(str(bench.dumped())))


def _with_fresh_checksums(packet: Packet) -> bytes:
    """The frame's bytes with all checksums and lengths computed by scapy."""
    fresh = Ether(bytes(packet))
    for layer, fields in ((IP, ("chksum", "len")), (IPv6, ("plen",)), (UDP, ("chksum", "len")), (TCP, ("chksum",))):
        for field in fields if layer in fresh else ():
            delattr(fresh[layer], field)
    return bytes(fresh)


def _stamp(packet: Packet) -> tuple[int, int, int]:
    """Magic, stream and sequence number."""
    if UDP in packet:
        magic, number, high, low = struct.unpack_from("!HBBI", bytes(packet[UDP].payload))
        return magic, number, high << 32 | low
    magic, number, high = struct.unpack_from("!HBB", bytes(packet[TCP].payload))
    return magic, number, high << 32 | packet[TCP].seq


@pytest.mark.parametrize("code", VECTORS)
@pytest.mark.parametrize("shape", SHAPES)
def frames_are_whole_and_their_checksums_are_right(tmp_path: Path, shape: str, code: str) -> None:
    keys = SHAPES[shape] | {"id": 77, "src_port": {"first": 1000, "count": 10}}
    packets = _dump(tmp_path, 100, code, **keys)
    size = keys.get("size", 84 if "dst_ip" in keys else 64)
    for number, packet in enumerate(packets):
        assert len(packet) == size - 4
        assert bytes(packet) == _with_fresh_checksums(packet)
        magic, stream_id, sequence = _stamp(packet)
        assert (magic >> 8, stream_id, sequence) == (0xD3, 77, number)
        assert (packet.src, packet.dst) == ("02:00:00:00:00:10", "02:00:00:00:00:99")
        assert packet[TCP if TCP in packet else UDP].sport == 1000 + number % 10
        if UDP in packet:
            assert packet[UDP].chksum != 0


def tags_and_time_to_live_are_as_asked(tmp_path: Path) -> None:
    packet = _dump(tmp_path, 1, vlan={"id": 5, "priority": 3}, ttl=9, dst_port=53)[0]
    assert (packet[Dot1Q].vlan, packet[Dot1Q].prio, packet[IP].ttl, packet[UDP].dport) == (5, 3, 9, 53)
    assert (packet[IP].src, packet[IP].dst) == ("198.18.0.1", "198.19.0.1")


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ("imix", {64: 90, 128: 47, 256: 30, 512: 22, 1024: 11}),
        ("classic", {64: 7, 570: 4, 1518: 1}),
        ([{"size": 100, "weight": 2}, {"size": 200, "weight": 3}], {100: 2, 200: 3}),
    ],
)
def a_mix_has_its_shares_to_the_frame(tmp_path: Path, size: Any, wanted: dict[int, int]) -> None:
    rounds = 5
    packets = _dump(tmp_path, rounds * sum(wanted.values()), size=size)
    assert Counter(len(packet) + 4 for packet in packets) == {bytes_: n * rounds for bytes_, n in wanted.items()}
    assert all(bytes(packet) == _with_fresh_checksums(packet) for packet in packets)


def bytes_are_counted_with_the_fcs(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        reported, _ = bench.run_one(flood(frames=1200, size="classic"))
        assert reported.sent_bytes == reported.received_bytes == 100 * (7 * 64 + 4 * 570 + 1518)


def _fields(packets: list[Packet], key: str) -> list[object]:
    read = {
        "src_mac": lambda packet: packet.src,
        "dst_mac": lambda packet: packet.dst,
        "src_ip": lambda packet: packet[IP].src,
        "dst_ip": lambda packet: packet[IP].dst,
        "src_port": lambda packet: packet[UDP].sport,
        "dst_port": lambda packet: packet[UDP].dport,
    }
    return [read[key](packet) for packet in packets]


FIRST = {
    "src_mac": "02:00:00:00:ff:fe",
    "dst_mac": "02:00:00:00:00:ff",
    "src_ip": "198.18.0.255",
    "dst_ip": "198.19.255.254",
    "src_port": 250,
    "dst_port": 1000,
}


@pytest.mark.parametrize("is_random", [False, True])
@pytest.mark.parametrize("key", FIRST)
def a_field_takes_each_value_equally_often(tmp_path: Path, key: str, is_random: bool) -> None:
    counting: dict[str, Any] = {key: {"first": FIRST[key], "count": 16, "random": is_random}}
    packets = _dump(tmp_path, 64, **counting)
    values = _fields(packets, key)
    assert values[0] == FIRST[key] or is_random
    assert set(Counter(values).values()) == {4}
    assert len(set(values)) == 16
    assert values[:16] == values[16:32]
    if not is_random:
        assert values[:2] == [FIRST[key], values[1]]
        assert values[1] != values[0]


@pytest.mark.parametrize("is_random", [False, True])
def fields_together_make_all_their_flows(tmp_path: Path, is_random: bool) -> None:
    counts = {"src_ip": 3, "dst_ip": 4, "src_port": 5}
    counting: dict[str, Any] = {
        key: {"first": FIRST[key], "count": n, "random": is_random} for key, n in counts.items()
    }
    packets = _dump(tmp_path, 60, **counting)
    assert len(set(zip(*(_fields(packets, key) for key in counts), strict=True))) == 60


def a_million_flows_are_distinct(tmp_path: Path) -> None:
    n = 1_000_000
    counting = {"src_ip": {"first": "198.18.0.1", "count": 1000}, "dst_ip": {"first": "198.19.0.1", "count": 1000}}
    with Bench(tmp_path, [f"{THERE} dump={n} ring=16384"]) as bench:
        reported, truth = bench.run_one(flood(frames=n, **counting))
        assert (reported.flows, reported.sent, truth.offered) == (n, n, n)
        whole = bench.dumped().read_bytes()
        bench.dumped().unlink()
    step = PCAP_RECORD + 60
    assert len(whole) == PCAP_HEAD + n * step
    first = PCAP_HEAD + PCAP_RECORD + 26  # addresses of the first packet
    assert len({whole[at : at + 8] for at in range(first, len(whole), step)}) == n
    _check_rare_checksums([whole[at - 26 : at + 34] for at in range(first, len(whole), step)])


def _check_rare_checksums(frames: list[bytes]) -> None:
    """A UDP checksum of 0 is sent as ffff (RFC 768); a million frames include some of these."""
    checksums = Counter(frame[40:42] for frame in frames)
    assert b"\0\0" not in checksums
    rare = [Ether(frame) for frame in frames if frame[40:42] == b"\xff\xff"]
    assert rare
    assert all(bytes(packet) == _with_fresh_checksums(packet) for packet in rare)
