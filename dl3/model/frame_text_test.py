"""Frames in a few words."""

import pytest

from dl3.model.frame_text import words_of

MACS = "020000000001020000000002"
IP4 = "450000200000{fragment}4011{rest}0a0000010a010001"
UDP = "13880035000c0000"


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (MACS + "0800" + IP4.format(fragment="0000", rest="0000") + UDP, "10.0.0.1:5000 > 10.1.0.1:53 udp"),
        (MACS + "0800" + IP4.format(fragment="0001", rest="0000") + UDP, "10.0.0.1 > 10.1.0.1 udp"),
        (MACS + "8100000a0800" + IP4.format(fragment="0000", rest="0000"), "vlan 10 10.0.0.1 > 10.1.0.1 udp"),
        (
            MACS + "86dd" + "6000000000081140" + "20010db8" + "00" * 11 + "01" + "fe80" + "00" * 13 + "02" + UDP,
            "[2001:db8::1]:5000 > [fe80::2]:53 udp",
        ),
        (MACS + "0806" + "00" * 46, "02:00:00:00:00:02 > 02:00:00:00:00:01 ARP"),
        (MACS + "0801", "02:00:00:00:00:02 > 02:00:00:00:00:01 type 0x0801"),
        (MACS + "080045", "02:00:00:00:00:02 > 02:00:00:00:00:01 type 0x0800"),
        (MACS, "cut frame"),
        ("", "cut frame"),
    ],
)
def says_what_a_frame_is(frame: str, words: str) -> None:
    assert words_of(bytes.fromhex(frame)) == words


@pytest.mark.parametrize("start", ["", "0800", "810000058100", "86dd"])
def takes_frames_that_end_anywhere(start: str) -> None:
    whole = bytes.fromhex(MACS + start) + b"\x4f" * 60
    assert all(words_of(whole[:n]) for n in range(len(whole) + 1))
