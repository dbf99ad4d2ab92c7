"""Packets as text, and the frames that scapy reads out of them."""

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from dl3.model.fault import UsageFault
from dl3.model.packet_text import frame_of, parse_packet

TO, FROM = bytes.fromhex("020000000001"), bytes.fromhex("0200000000fe")


def _frame(text: str) -> bytes:
    return frame_of(parse_packet(text), TO, FROM)


def the_words_are_in_the_frame() -> None:
    read = Ether(_frame("udp 10.0.0.1:1000 > 203.0.113.7:53 ttl 3 dscp 46 length 100 df"))
    assert (read.dst, read.src) == ("02:00:00:00:00:01", "02:00:00:00:00:fe")
    assert (read[IP].src, read[IP].dst, read[IP].ttl, read[IP].tos) == ("10.0.0.1", "203.0.113.7", 3, 46 << 2)
    assert (read[IP].len, str(read[IP].flags), read[UDP].sport, read[UDP].dport) == (100, "DF", 1000, 53)


def addresses_of_ip6_with_ports_are_in_brackets() -> None:
    read = Ether(_frame("vlan 10 tcp [2001:db8::1]:4 > 2001:db8::2 ttl 1"))
    assert (read[Dot1Q].vlan, read[IPv6].src, read[IPv6].dst) == (10, "2001:db8::1", "2001:db8::2")
    assert (read[IPv6].hlim, read[TCP].sport, read[TCP].dport, str(read[TCP].flags)) == (1, 4, 9, "S")


def two_tags_are_a_service_tag_and_a_customer_tag() -> None:
    read = Ether(_frame("udp 10.0.0.1 > 10.0.0.2 vlan 100 vlan 7"))
    assert (read[Dot1AD].vlan, read[Dot1Q].vlan) == (100, 7)


def icmp_is_an_echo_request_of_the_family() -> None:
    assert Ether(_frame("icmp 10.0.0.1>10.0.0.2"))[ICMP].type == 8
    assert ICMPv6EchoRequest in Ether(_frame("icmp 2001:db8::1 > 2001:db8::2"))


@pytest.mark.parametrize(
    "text",
    [
        "udp 10.0.0.1 > 10.0.0.2 length 29",
        "tcp 10.0.0.1 > 10.0.0.2 length 1500",
        "icmp 10.0.0.1 > 10.0.0.2 length 1001",
        "udp ::1 > ::2 length 9188",
        "tcp ::1 > ::2 vlan 4094",
        "icmp ::1 > ::2 dscp 63",
    ],
)
def checksums_are_correct(text: str) -> None:
    frame = _frame(text)
    again = Ether(frame)
    for layer in (IP, UDP, TCP, ICMP):
        if layer in again:
            del again[layer].chksum
    if ICMPv6EchoRequest in again:
        del again[ICMPv6EchoRequest].cksum
    assert bytes(again) == frame


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no packet: expected"),
        ("udp 10.0.0.1", "is no packet: expected"),
        ("udp 10.0.0.1 >", "is no packet: expected"),
        ("10.0.0.1 > 10.0.0.2", "is no packet: expected"),
        ("udp 1.1.1.1 > 2.2.2.2 > 3.3.3.3", "is no packet: expected"),
        ("gre 10.0.0.1 > 10.0.0.2", "unknown protocol 'gre'"),
        ("udp 10.0.0.1:70000 > 10.0.0.2", "invalid port '70000': expected a number from 0 to 65535"),
        ("udp 10.0.0.256 > 10.0.0.2", "invalid address '10.0.0.256'"),
        ("udp [10.0.0.1]:1 > 10.0.0.2", "only IPv6 addresses are in brackets"),
        ("udp [::1 > ::2", "invalid end '[::1'"),
        ("udp 10.0.0.1 > ::2", "not of the same family"),
        ("icmp 10.0.0.1:8 > 10.0.0.2", "has no ports"),
        ("udp 10.0.0.1 > 10.0.0.2 ttl", "'ttl' in the packet has no number"),
        ("udp 10.0.0.1 > 10.0.0.2 ttl 256", "invalid ttl '256'"),
        ("udp 10.0.0.1 > 10.0.0.2 ttl 1 ttl 2", "'ttl' is given twice"),
        ("udp 10.0.0.1 > 10.0.0.2 length 27", "expected length 28 or more"),
        ("udp 10.0.0.1 > 10.0.0.2 length 9189", "invalid length '9189'"),
        ("udp 10.0.0.1 > 10.0.0.2 mtu 9", "unknown word 'mtu'"),
        ("vlan 1 vlan 2 vlan 3 udp 10.0.0.1 > 10.0.0.2", "at most 2 VLAN tags"),
        ("vlan 0 udp 10.0.0.1 > 10.0.0.2", "invalid vlan '0'"),
        ("udp ::1 > ::2 df", "df is for IPv4"),
    ],
)
def what_is_no_packet_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageFault) as caught:
        _frame(text)
    assert sentence in str(caught.value)
