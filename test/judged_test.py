"""Frames of all kinds, valid and broken, against an independent reading of the RFCs: verdict, bytes, order."""

import random
import struct
from collections import Counter
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from harness.fragments import DONT_FRAGMENT, fragments
from harness.wired import Port, config_text, walked
from scapy.utils import PcapWriter, RawPcapReader

N_FRAMES, N_FATES = 6_000, 21
OURS, OUT, NEXT = (bytes.fromhex(mac) for mac in ("02700000000a", "02700000000b", "02000000010b"))
MACS = (*[OURS] * 12, b"\xff" * 6, b"\x01\x00\x5e\0\0\x01", b"\x02\0\0\0\0\x77", OURS[:5] + b"\x0b")
TYPES = (0x0806, 0x8100, 0x88A8, 0x88CC, 0x002E, 0x0800, 0x86DD)
EDGES4 = (0, 5, 0x00FFFFFF, 0x01000000, 0x7F000001, 0xA9FE0101, 0xDFFFFFFF, 0xE0000001, 0xF0000000, 0xFFFFFFFF)
EDGES6 = [
    IPv6Address(text).packed
    for text in (
        "::",
        "::1",
        "::2",
        "::1:0",
        "fe80::",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.1.2",
        "::1:ffff:1:2",
        "1::",
    )
]
MTU = 1500
Judged = str | list[bytes]  # the verdict of a drop, or the frames that are sent


def _sum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _packet4(rng: random.Random) -> bytes:
    words = rng.choice([*[5] * 14, 4, 6, 15])
    options, payload = b"\x01" * 4 * (words - 5), rng.randbytes(rng.choice([0, 1, 8, 26, 1400, 1480, 1481]))
    length = 20 + len(options) + len(payload)
    length = length if rng.random() < 0.95 else rng.choice([0, 19, 20, length + 1, length - 1, 65535])
    source, target = (rng.choice([rng.getrandbits(32)] * 9 + [rng.choice(EDGES4)]) for _ in range(2))
    begin = rng.choice([*[0x40] * 20, 0x50, 0x60]) | words
    head = struct.pack(
        "!BBHHH", begin, rng.getrandbits(8), length, rng.getrandbits(16), rng.choice([0, 0x4000, 0x2005])
    )
    head += struct.pack(
        "!BBHII", rng.choice([64, 64, 64, 0, 1, 2, 255]), rng.choice([1, 6, 17, 253]), 0, source, target
    )
    right = _sum((head + options)[: max(20, 4 * words)])
    checksum = right if rng.random() < 0.95 else rng.choice([right ^ 1, 0, 0xFFFF])
    return head[:10] + struct.pack("!H", checksum or rng.choice([0, 0xFFFF])) + head[12:] + options + payload


def _packet6(rng: random.Random) -> bytes:
    payload = rng.randbytes(rng.choice([0, 1, 8, 40, 1400, 1460, 1461]))
    length = len(payload) if rng.random() < 0.95 else rng.choice([0, len(payload) + 1, 65535])
    begin = rng.choice([*[6] * 20, 4, 7]) << 28 | rng.getrandbits(28)
    limit, following = rng.choice([64, 64, 64, 0, 1, 2, 255]), rng.choice([6, 17, 58, 43, 44, 60, 59, 0])
    ends = [rng.choice([b"\x20\x01" + rng.randbytes(14)] * 9 + [rng.choice(EDGES6)]) for _ in range(2)]
    return struct.pack("!IHBB", begin, length, following, limit) + b"".join(ends) + payload


def _frame(rng: random.Random) -> bytes:
    """Mostly addressed to us; possibly padded, truncated, or with one bit flipped."""
    is_ip4 = rng.random() < 0.6
    kind = 0x0800 if is_ip4 else 0x86DD
    frame = (
        rng.choice(MACS) + b"\x02\0\0\0\0\x88" + struct.pack("!H", kind if rng.random() < 0.95 else rng.choice(TYPES))
    )
    frame += (_packet4 if is_ip4 else _packet6)(rng)
    frame += bytes(rng.choice([0, 0, 0, 1, 4, 46, 100]))
    what = rng.random()
    if what < 0.05:
        return frame[: rng.randrange(14, 60)]
    if what < 0.15:
        at = rng.randrange(min(60, len(frame)))
        return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]
    return frame


def _fault4(frame: bytes) -> str:
    """RFC 1812, 5.2.2 and 5.3.7."""
    words, length = frame[14] & 15, int.from_bytes(frame[16:18])
    if frame[14] >> 4 != 4:
        return "ip4_version"
    if words < 5:
        return "ip4_header_length"
    if not 4 * words <= length <= len(frame) - 14:
        return "ip4_length"
    if _sum(frame[14 : 14 + 4 * words]):
        return "ip4_checksum"
    if words > 5:
        return "ip4_options"
    if frame[26] in (0, 127) or frame[26] >= 224:
        return "martian_source"
    return "link_local_source" if frame[26:28] == b"\xa9\xfe" else ""


def _fault6(frame: bytes) -> str:
    """RFC 8200, 3 and 4.3; RFC 4291, 2.5; RFC 6890."""
    source = int.from_bytes(frame[22:38])
    if frame[14] >> 4 != 6:
        return "ip6_version"
    if 54 + int.from_bytes(frame[18:20]) > len(frame):
        return "ip6_length"
    if frame[20] == 0:
        return "ip6_hop_by_hop"
    if source <= 1 or source >> 120 == 0xFF or source >> 32 == 0xFFFF:
        return "martian_source"
    return "link_local_source" if source >> 118 == 0xFE80 >> 6 else ""


def _no_way4(frame: bytes) -> str:
    first = frame[30]
    if first in (0, 127) or first >= 240:
        return "martian_destination"
    if first >= 224:
        return "multicast"
    return "link_local_destination" if frame[30:32] == b"\xa9\xfe" else ""


def _no_way6(frame: bytes) -> str:
    target = int.from_bytes(frame[38:54])
    if target <= 1:
        return "martian_destination"
    if target >> 120 == 0xFF:
        return "multicast"
    return "link_local_destination" if target >> 118 == 0xFE80 >> 6 else ""


def _leave(frame: bytes) -> Judged:
    """TTL, MTU, and the expected output of a valid packet: without a trailer, except padding to the minimum length."""
    is_ip4 = frame[12] == 8
    ttl, length = (22, int.from_bytes(frame[16:18])) if is_ip4 else (21, 40 + int.from_bytes(frame[18:20]))
    if frame[ttl] <= 1:
        return "ttl_expired"
    if length > MTU and (not is_ip4 or frame[20] & DONT_FRAGMENT >> 8):
        return "mtu_exceeded"
    frame = frame[: max(14 + length, 60)]
    frame = NEXT + OUT + frame[12:ttl] + bytes([frame[ttl] - 1]) + frame[ttl + 1 :]
    if is_ip4:
        checksum = _sum(frame[14:24] + b"\0\0" + frame[26:34])
        frame = frame[:24] + struct.pack("!H", checksum) + frame[26:]
    if length > MTU:
        return [frame[:14] + piece for piece in fragments(frame[14 : 14 + length], MTU)]
    return [frame]


def _judge(frame: bytes) -> Judged:
    kind = int.from_bytes(frame[12:14])
    if (kind == 0x0800 and len(frame) < 34) or (kind == 0x86DD and len(frame) < 54):
        return "runt"
    if kind == 0x0806:
        return "arp"
    if frame[0] & 1:
        return "mac_group"
    if frame[:6] != OURS:
        return "mac_not_ours"
    if kind == 0x0800:
        return _fault4(frame) or _no_way4(frame) or _leave(frame)
    if kind == 0x86DD:
        return _fault6(frame) or _no_way6(frame) or _leave(frame)
    return "vlan_unknown" if kind in (0x8100, 0x88A8) else "ethertype_unknown"


def _write(path: Path, frames: list[bytes]) -> str:
    with PcapWriter(str(path), linktype=1) as file:
        file.write_header(None)
        for frame in frames:
            file.write(frame)
    return str(path)


def _config(folder: Path, frames: list[bytes], args: list[str]) -> str:
    """Port a reads the frames from a file, all routes lead to port b, which writes a file."""
    first, none = _write(folder / "in.pcap", frames), _write(folder / "none.pcap", [])
    ports = [
        Port("a", device=f"net_pcap0,rx_pcap={first},tx_pcap={folder}/back.pcap", keys={"mac": OURS.hex(":")}),
        Port("b", device=f"net_pcap1,rx_pcap={none},tx_pcap={folder}/out.pcap", keys={"mac": OUT.hex(":")}),
    ]
    routes = [f"default via {via} dev b lladdr {NEXT.hex(':')}" for via in ("10.99.0.2", "2001:db8:99::2")]
    return config_text(ports, routes=routes, eal={"args": args}, memory={"hugepages": "never"})


@pytest.mark.parametrize("args", [[], ["--force-max-simd-bitwidth=64"]], ids=["vector", "scalar"])
def each_frame_is_handled_as_the_rfcs_require(tmp_path: Path, args: list[str]) -> None:
    rng = random.Random(1812)
    frames = [_frame(rng) for _ in range(N_FRAMES)]
    fates = [_judge(frame) for frame in frames]
    account = walked(_config(tmp_path, frames, args), N_FRAMES)
    assert account.drops == Counter(fate for fate in fates if isinstance(fate, str))
    left = [bytes(packet) for packet, _ in RawPcapReader(str(tmp_path / "out.pcap"))]
    sent = [frame for fate in fates if isinstance(fate, list) for frame in fate]
    for kind in (0x08, 0x86):  # order is preserved within each address family
        assert [frame for frame in left if frame[12] == kind] == [frame for frame in sent if frame[12] == kind]
    assert account.sent == len(left) > N_FRAMES // 10
    assert len(account.drops) == N_FATES, "each way to be dropped was tried"
