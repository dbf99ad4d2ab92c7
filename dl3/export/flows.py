"""Flows of sampled packets: what IPFIX tells of."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dl3.export.reasons import FORWARDED, reason_of
from dl3.export.sample import Sample
from dl3.model.frame_text import IP4_TYPE, IP6_TYPE, VLAN_TYPES, WITH_PORTS

TCP, ICMP, ICMP6 = 6, 1, 58
IP4_BYTES, IP6_BYTES = 20, 40
IDLE, ACTIVE, FORCED, LACK = 1, 2, 4, 5  # flowEndReason
EXTENSIONS = (0, 43, 60)  # hop by hop, routing, destination options
FRAGMENT = 44
MOST_HEADERS = 8
MS = 10**6


class Key(NamedTuple):
    """What the packets of a flow have in common."""

    src: bytes  # 4 or 16
    dst: bytes
    src_port: int  # 0 if there is none; ICMP: 0, and type and code as destination port
    dst_port: int
    protocol: int
    tos: int
    vlan: int  # 0: none
    port: int
    status: int  # forwarding status


@dataclass
class Flow:
    """A flow and what was sampled of it."""

    key: Key
    first_ms: int
    last_ms: int
    packets: int = 0
    bytes: int = 0  # of IP packets
    tcp_flags: int = 0
    end: int = FORCED


class Layer4(NamedTuple):
    """Ports, and the flags of TCP."""

    src_port: int = 0
    dst_port: int = 0
    tcp_flags: int = 0


def layer4(protocol: int, payload: bytes) -> Layer4:
    """Of the first bytes of a payload that is no later fragment."""
    if protocol in (ICMP, ICMP6) and len(payload) >= 2:
        return Layer4(0, payload[0] << 8 | payload[1])
    if protocol not in WITH_PORTS or len(payload) < 4:
        return Layer4()
    src_port, dst_port = struct.unpack_from("!HH", payload)
    return Layer4(src_port, dst_port, payload[13] if protocol == TCP and len(payload) > 13 else 0)


def upper(packet: bytes) -> tuple[int, bytes]:
    """The protocol behind the extension headers of an IPv6 packet, and the payload, empty if it is a later fragment."""
    protocol, at = packet[6], IP6_BYTES
    for _ in range(MOST_HEADERS):
        if protocol == FRAGMENT and at + 8 <= len(packet):
            if struct.unpack_from("!H", packet, at + 2)[0] & 0xFFF8:
                return packet[at], b""
            protocol, at = packet[at], at + 8
        elif protocol in EXTENSIONS and at + 2 <= len(packet):
            protocol, at = packet[at], at + (packet[at + 1] + 1) * 8
        else:
            break
    return protocol, packet[at:]


def key_of(sample: Sample) -> tuple[Key, int, int] | None:
    """The key, the bytes of the IP packet and the TCP flags; None: not IP."""
    frame, at, vlan = sample.frame, 12, 0
    while len(frame) >= at + 4 and struct.unpack_from("!H", frame, at)[0] in VLAN_TYPES:
        vlan = vlan or struct.unpack_from("!H", frame, at + 2)[0] & 0xFFF
        at += 4
    kind = int.from_bytes(frame[at : at + 2])
    packet = frame[at + 2 :]
    status = FORWARDED if sample.verdict is None else reason_of(sample.verdict).ipfix
    if kind == IP4_TYPE and len(packet) >= IP4_BYTES:
        length, offset = struct.unpack_from("!H2xH", packet, 2)
        l4 = Layer4() if offset & 0x1FFF else layer4(packet[9], packet[(packet[0] & 15) * 4 :])
        ends, protocol, tos = (packet[12:16], packet[16:20]), packet[9], packet[1]
    elif kind == IP6_TYPE and len(packet) >= IP6_BYTES:
        word, length = struct.unpack_from("!IH", packet)
        length += IP6_BYTES
        protocol, payload = upper(packet)
        l4 = layer4(protocol, payload)
        ends, tos = (packet[8:24], packet[24:40]), word >> 20 & 0xFF
    else:
        return None
    key = Key(*ends, l4.src_port, l4.dst_port, protocol, tos, vlan, sample.port, status)
    return key, length, l4.tcp_flags


class Flows:
    """The flows that were seen and not told yet. At most `most`: those that would be too many end at once."""

    def __init__(self, active_s: float, idle_s: float, most: int) -> None:
        self._active_ms, self._idle_ms, self._most = int(active_s * 1000), int(idle_s * 1000), most
        self._flows: dict[Key, Flow] = {}
        self.n_other = 0  # samples that are not IP

    def __len__(self) -> int:
        return len(self._flows)

    def add(self, sample: Sample) -> Flow | None:
        """Count a frame. A flow that ends for want of space: the oldest one."""
        found = key_of(sample)
        if found is None:
            self.n_other += 1
            return None
        key, length, tcp_flags = found
        at_ms, ended = sample.time_ns // MS, None
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= self._most:
                ended = self._flows.pop(next(iter(self._flows)))
                ended.end = LACK
            flow = self._flows[key] = Flow(key, at_ms, at_ms)
        flow.packets += 1
        flow.bytes += length
        flow.tcp_flags |= tcp_flags
        flow.first_ms, flow.last_ms = min(flow.first_ms, at_ms), max(flow.last_ms, at_ms)
        return ended

    def expire(self, now_ms: int, everything: bool = False) -> Iterator[Flow]:
        """Those that have been idle or active for long; all of them at the end."""
        for key, flow in list(self._flows.items()):
            if everything:
                flow.end = FORCED
            elif now_ms - flow.last_ms >= self._idle_ms:
                flow.end = IDLE
            elif now_ms - flow.first_ms >= self._active_ms:
                flow.end = ACTIVE
            else:
                continue
            del self._flows[key]
            yield flow
