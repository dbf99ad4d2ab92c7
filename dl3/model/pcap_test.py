"""Capture files in all their byte orders, and what is wrong with others."""

import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from scapy.packet import Raw
from scapy.utils import PcapNgWriter, wrpcap

from dl3.model.fault import UsageFault
from dl3.model.pcap import Captured, captured

FRAMES = [bytes(range(n)) for n in (60, 61, 1)]


def _pcap(order: str, magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    records = [struct.pack(order + "IIII", 1, 2, len(frame), len(frame)) + frame for frame in FRAMES]
    return head + b"".join(records)


def _block(order: str, kind: int, body: bytes) -> bytes:
    padded = body + bytes(-len(body) % 4)
    n = len(padded) + 12
    return struct.pack(order + "II", kind, n) + padded + struct.pack(order + "I", n)


def _pcapng(order: str, link: int = 1, iface: int = 0) -> bytes:
    section = _block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    described = _block(order, 1, struct.pack(order + "HHI", link, 0, 0))
    packets = [
        _block(order, 6, struct.pack(order + "IIIII", iface, 0, 0, len(frame), len(frame)) + frame) for frame in FRAMES
    ]
    return section + described + _block(order, 0xBAD, b"unknown") + b"".join(packets)


def _frames(data: bytes) -> list[bytes]:
    return [packet.frame for packet in captured(data, "x")]


@pytest.mark.parametrize("order", ["<", ">"])
def frames_are_read_in_both_orders(order: str) -> None:
    assert _frames(_pcap(order)) == FRAMES
    assert _frames(_pcap(order, 0xA1B23C4D)) == FRAMES
    assert _frames(_pcapng(order)) == FRAMES


def sections_may_differ() -> None:
    assert _frames(_pcapng("<") + _pcapng(">")) == FRAMES * 2


def a_simple_packet_has_the_length_of_its_interface() -> None:
    section = _block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    described = _block("<", 1, struct.pack("<HHI", 1, 0, 20))
    packet = _block("<", 3, struct.pack("<I", 60) + FRAMES[0][:20])
    assert list(captured(section + described + packet, "x")) == [Captured(FRAMES[0][:20], 60)]


def files_of_another_program_are_read(tmp_path: Path) -> None:
    wrpcap(str(tmp_path / "a.pcap"), [Raw(frame) for frame in FRAMES], linktype=1)
    assert _frames((tmp_path / "a.pcap").read_bytes()) == FRAMES
    with PcapNgWriter(str(tmp_path / "a.pcapng")) as writer:
        for frame in FRAMES:
            writer.write(Raw(frame))
    assert [len(frame) for frame in _frames((tmp_path / "a.pcapng").read_bytes())] == [60, 61, 1]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"\x7fELF", "neither pcap nor pcapng"),
        (_pcap("<")[:10], "ends within its header"),
        (_pcap("<")[:-1], "ends within a packet"),
        (_pcap(">")[:30], "ends within a packet"),
        (_pcap("<", link=101), "link type 101, not of Ethernet"),
        (_pcapng("<")[:-1], "ends within a packet"),
        (_pcapng(">", link=113), "link type 113"),
        (_pcapng("<", iface=1), "interface 1, which it does not describe"),
    ],
)
def what_is_wrong_gets_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(UsageFault) as caught:
        _frames(data)
    assert sentence in str(caught.value)


def random_changes_give_frames_or_a_sentence() -> None:
    dice = random.Random(1)
    files = [make(order) for make in (_pcap, _pcapng) for order in "<>"]
    for _ in range(3000):
        data = bytearray(dice.choice(files))
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 255, dice.randrange(256)))
        cut = bytes(data[: dice.randrange(len(data))]) if dice.randrange(3) == 0 else bytes(data)
        with suppress(UsageFault):
            assert sum(len(frame) for frame in _frames(cut)) <= len(cut)
