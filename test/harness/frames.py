"""Frames to send, and the expected output of a router, computed with scapy."""

from typing import Any

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from harness.wired import host_mac, port_mac

__all__ = [
    "ARP",
    "ICMP",
    "IP",
    "TCP",
    "UDP",
    "Ether",
    "ICMPv6EchoRequest",
    "IPv6",
    "Packet",
    "Raw",
    "forwarded",
    "ip4",
    "ip6",
    "on",
]


def on(index: int, packet: Packet, **ether: Any) -> bytes:
    """`packet` in a frame for port number `index`, from the host at its far end."""
    return bytes(Ether(**({"src": host_mac(index), "dst": port_mac(index)} | ether)) / packet)


def ip4(dst: str, payload: int = 18, **fields: Any) -> Packet:
    """A UDP packet in IPv4 with `payload` bytes of data."""
    header: dict[str, Any] = {"src": "10.0.1.2", "dst": dst, "ttl": 64}
    return IP(**(header | fields)) / UDP(sport=1024, dport=53) / Raw(bytes(payload))


def ip6(dst: str, payload: int = 18, **fields: Any) -> Packet:
    """A UDP packet in IPv6 with `payload` bytes of data."""
    header: dict[str, Any] = {"src": "2001:db8:1::2", "dst": dst, "hlim": 64}
    return IPv6(**(header | fields)) / UDP(sport=1024, dport=53) / Raw(bytes(payload))


def forwarded(frame: bytes, index: int, dst_mac: str | None = None) -> bytes:
    """The frame that leaves on port number `index`: MACs of the next hop, TTL decremented, checksum updated."""
    packet = Ether(frame)
    packet.src, packet.dst = port_mac(index), dst_mac or host_mac(index)
    if IPv6 in packet:
        packet[IPv6].hlim -= 1
    else:
        packet[IP].ttl -= 1
        del packet[IP].chksum
    return bytes(packet)
