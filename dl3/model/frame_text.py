"""An Ethernet frame in a few words."""

import struct
from ipaddress import IPv4Address, IPv6Address

VLAN_TYPES = (0x8100, 0x88A8)
IP4_TYPE, IP6_TYPE = 0x0800, 0x86DD
TYPES = {0x0806: "ARP", 0x8847: "MPLS", 0x88CC: "LLDP"}
PROTOCOLS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 47: "gre", 58: "icmp6", 89: "ospf", 132: "sctp"}
WITH_PORTS = (6, 17, 33, 132, 136)
IP4_BYTES, IP6_BYTES = 20, 40


def end(address: object, port: int | None) -> str:
    """'10.0.0.1:53', '[2001:db8::1]:53' or the address."""
    if port is None:
        return str(address)
    return f"[{address}]:{port}" if isinstance(address, IPv6Address) else f"{address}:{port}"


def between(src: object, dst: object, protocol: int, payload: bytes) -> str:
    """'10.0.0.1:5000 > 10.1.0.1:53 udp'."""
    has_ports = protocol in WITH_PORTS and len(payload) >= 4
    src_port, dst_port = struct.unpack_from("!HH", payload) if has_ports else (None, None)
    return f"{end(src, src_port)} > {end(dst, dst_port)} {PROTOCOLS.get(protocol, f'protocol {protocol}')}"


def ip4(packet: bytes) -> str:
    """An IPv4 packet; later fragments have no ports."""
    offset = (packet[6] << 8 | packet[7]) & 0x1FFF
    payload = b"" if offset else packet[(packet[0] & 15) * 4 :]
    return between(IPv4Address(packet[12:16]), IPv4Address(packet[16:20]), packet[9], payload)


def ip6(packet: bytes) -> str:
    """An IPv6 packet; extension headers are not walked."""
    return between(IPv6Address(packet[8:24]), IPv6Address(packet[24:40]), packet[6], packet[IP6_BYTES:])


def words_of(frame: bytes) -> str:
    """Addresses, ports and protocol, or the MAC addresses of what is not IP. Any bytes."""
    at, vlans = 12, ""
    while len(frame) >= at + 6 and int.from_bytes(frame[at : at + 2], "big") in VLAN_TYPES:
        vlans += f"vlan {int.from_bytes(frame[at + 2 : at + 4], 'big') & 0xFFF} "
        at += 4
    if len(frame) < at + 2:
        return "cut frame"
    kind, packet = int.from_bytes(frame[at : at + 2], "big"), frame[at + 2 :]
    if kind == IP4_TYPE and len(packet) >= IP4_BYTES:
        return vlans + ip4(packet)
    if kind == IP6_TYPE and len(packet) >= IP6_BYTES:
        return vlans + ip6(packet)
    return f"{vlans}{frame[6:12].hex(':')} > {frame[:6].hex(':')} {TYPES.get(kind, f'type {kind:#06x}')}"
