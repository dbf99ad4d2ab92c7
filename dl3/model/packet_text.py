"""A packet as text, 'udp 10.0.0.1:1000 > 203.0.113.7:53 ttl 3', and its frame."""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dl3.model.fault import UsageFault
from dl3.model.flow_text import address, number

FORM = "[vlan N] udp|tcp|icmp SOURCE[:PORT] > DESTINATION[:PORT] [ttl N] [dscp N] [length N] [df]"
UDP, TCP, ICMP4, ICMP6 = 17, 6, 1, 58
PROTOCOLS: Mapping[str, int] = {"udp": UDP, "tcp": TCP, "icmp": ICMP4}
PORTS = (40000, 9)
IP4_BYTES, IP6_BYTES = 20, 40
TRANSPORT_BYTES: Mapping[int, int] = {UDP: 8, TCP: 20, ICMP4: 8, ICMP6: 8}
PAYLOAD_BYTES = 18
MOST_LENGTH = 9188  # with header and two tags, a frame of 9,210 bytes
MOST_VLANS = 2
PADDED_BYTES = 60
# Words that are followed by a number: the lowest and the highest.
NUMBERS: Mapping[str, tuple[int, int]] = {
    "ttl": (0, 255),
    "dscp": (0, 63),
    "length": (IP4_BYTES, MOST_LENGTH),
    "vlan": (1, 4094),
}
ECHO: Mapping[int, int] = {ICMP4: 8, ICMP6: 128}
SYN = 2


@dataclass
class Given:
    """What the words say."""

    values: dict[str, int] = field(default_factory=dict)
    vlans: list[int] = field(default_factory=list)
    df: bool = False


@dataclass(frozen=True)
class PacketText:
    """A packet; `length` is that of the IP packet in bytes."""

    protocol: int
    src: bytes
    dst: bytes
    ports: tuple[int, int]
    length: int
    ttl: int = 64
    dscp: int = 0
    df: bool = False
    vlans: tuple[int, ...] = ()

    @property
    def is_ip6(self) -> bool:
        """Else IPv4."""
        return len(self.src) == 16


def end(word: str) -> tuple[bytes, int | None]:
    """The address and port of '10.0.0.1:53', '[2001:db8::1]:53', or an address alone."""
    found = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?|([^:\[\]]*)(?::(\d+))?|([^\[\]]*)", word)
    if not found:
        raise UsageFault(f"invalid end '{word}': expected ADDRESS, 10.0.0.1:53 or [2001:db8::1]:53")
    six, six_port, four, four_port, bare = found.groups()
    text = six if six is not None else four if four is not None else bare
    if six is not None and ":" not in six:
        raise UsageFault(f"invalid end '{word}': only IPv6 addresses are in brackets")
    port = six_port or four_port
    return address(text), number("port", port, 0, 65535) if port else None


def read_words(words: list[str], given: Given) -> None:
    """Options, in any order."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "df":
            given.df, at = True, at + 1
            continue
        if word not in NUMBERS:
            raise UsageFault(f"unknown word '{word}' in the packet: expected {FORM}")
        if at + 1 == len(words):
            raise UsageFault(f"'{word}' in the packet has no number after it")
        value = number(word, words[at + 1], *NUMBERS[word])
        if word == "vlan":
            given.vlans.append(value)
        elif word in given.values:
            raise UsageFault(f"'{word}' is given twice in the packet")
        else:
            given.values[word] = value
        at += 2


def ends_of(protocol: str, left: str, right: str) -> tuple[tuple[bytes, bytes], tuple[int, int]]:
    """Addresses and ports."""
    (src, src_port), (dst, dst_port) = end(left), end(right)
    if len(src) != len(dst):
        raise UsageFault(f"{left} and {right} are not of the same family: expected two IPv4 or two IPv6 addresses")
    if protocol == "icmp" and (src_port is not None or dst_port is not None):
        raise UsageFault("a packet of icmp has no ports: leave them out")
    ports = [
        given if given is not None else default for given, default in zip((src_port, dst_port), PORTS, strict=True)
    ]
    return (src, dst), (ports[0], ports[1])


def parse_packet(text: str) -> PacketText:
    """Read the form above. UsageFault names what is wrong."""
    words = text.replace(">", " > ").split()
    if words.count(">") != 1:
        raise UsageFault(f"'{text}' is no packet: expected {FORM}")
    at, given = words.index(">"), Given()
    if at < 2 or at + 2 > len(words):
        raise UsageFault(f"'{text}' is no packet: expected {FORM}")
    name = words[at - 2]
    if name not in PROTOCOLS:
        raise UsageFault(f"unknown protocol '{name}' of the packet: expected udp, tcp or icmp; --hex takes any frame")
    read_words(words[: at - 2], given)
    read_words(words[at + 2 :], given)
    (src, dst), ports = ends_of(name, words[at - 1], words[at + 1])
    return made(PROTOCOLS[name], src, dst, ports, given)


def made(protocol: int, src: bytes, dst: bytes, ports: tuple[int, int], given: Given) -> PacketText:
    """The packet, if all of it goes together."""
    is_ip6 = len(src) == 16
    protocol = ICMP6 if is_ip6 and protocol == ICMP4 else protocol
    least = (IP6_BYTES if is_ip6 else IP4_BYTES) + TRANSPORT_BYTES[protocol]
    length = given.values.pop("length", least + PAYLOAD_BYTES)
    if length < least:
        raise UsageFault(f"a packet of {length} bytes is shorter than its headers: expected length {least} or more")
    if len(given.vlans) > MOST_VLANS:
        raise UsageFault(f"a packet has at most {MOST_VLANS} VLAN tags, not {len(given.vlans)}")
    if given.df and is_ip6:
        raise UsageFault("df is for IPv4: IPv6 packets are never fragmented on the way")
    return PacketText(protocol, src, dst, ports, length, df=given.df, vlans=tuple(given.vlans), **given.values)


def sum16(data: bytes) -> int:
    """The checksum of the Internet (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def transport(packet: PacketText, n_bytes: int) -> bytes:
    """The header and a payload of zeros, with its checksum."""
    src, dst = packet.ports
    heads: Mapping[int, Callable[[], bytes]] = {
        UDP: lambda: struct.pack("!HHHH", src, dst, n_bytes, 0),
        TCP: lambda: struct.pack("!HHIIBBHHH", src, dst, 0, 0, 5 << 4, SYN, 65535, 0, 0),
    }
    head = heads.get(packet.protocol, lambda: struct.pack("!BBHHH", ECHO[packet.protocol], 0, 0, 1, 1))()
    body = head + bytes(n_bytes - len(head))
    pseudo = packet.src + packet.dst + struct.pack("!II", n_bytes, packet.protocol)
    total = sum16(body if packet.protocol == ICMP4 else pseudo + body)
    at = {UDP: 6, TCP: 16}.get(packet.protocol, 2)
    total = total or 0xFFFF if packet.protocol == UDP else total
    return body[:at] + total.to_bytes(2, "big") + body[at + 2 :]


def ip_packet(packet: PacketText) -> bytes:
    """The packet in bytes."""
    if packet.is_ip6:
        n_bytes = packet.length - IP6_BYTES
        word = 6 << 28 | packet.dscp << 22
        head = struct.pack("!IHBB", word, n_bytes, packet.protocol, packet.ttl) + packet.src + packet.dst
        return head + transport(packet, n_bytes)
    flags = 0x4000 if packet.df else 0
    fields = (0x45, packet.dscp << 2, packet.length, 0, flags, packet.ttl, packet.protocol)
    head = struct.pack("!BBHHHBBH", *fields, 0) + packet.src + packet.dst
    head = struct.pack("!BBHHHBBH", *fields, sum16(head)) + packet.src + packet.dst
    return head + transport(packet, packet.length - IP4_BYTES)


def frame_of(packet: PacketText, dst_mac: bytes, src_mac: bytes) -> bytes:
    """The frame, padded to the minimum of Ethernet. Two tags: the outer one is 802.1ad."""
    kinds = (0x88A8, 0x8100) if len(packet.vlans) == MOST_VLANS else (0x8100,)
    tags = b"".join(struct.pack("!HH", kind, vlan) for kind, vlan in zip(kinds, packet.vlans, strict=False))
    frame = dst_mac + src_mac + tags + (b"\x86\xdd" if packet.is_ip6 else b"\x08\x00") + ip_packet(packet)
    return frame + bytes(max(0, PADDED_BYTES - len(frame)))
