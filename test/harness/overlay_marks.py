"""Frames that leave a router of overlays, without what each sender chooses for itself; that is checked here.

Masked: the id and the header checksum of outer IPv4 headers and of ICMP; the UDP source port of outer headers, and the
checksum that depends on it. Checksums have to be right, ports in their range, and the same for all frames of a flow.
"""

import struct
from dataclasses import dataclass, field

from harness.overlay_frames import IP4, IP6, MAGIC, fold

VXLAN_PORTS = range(4789, 4800)
PORTS = range(32768, 65536)  # Linux's as set here, and then those that workers choose
FIRST_OF_WORKERS = 49152
OWN_PORTS = range(5000, 5100)
VLAN = 0x8100
ICMP, ICMP6, REDIRECT4, REDIRECT6 = 1, 58, 5, 137
UDP = 17
HEADER_BYTES = {IP4: 20, IP6: 40}


def number_of(frame: bytes) -> int:
    """The number that it carries."""
    at = frame.index(MAGIC) + len(MAGIC)
    return int(struct.unpack("!I", frame[at : at + 4])[0])


def _network(frame: bytes | bytearray) -> tuple[int, int]:
    """The type of a frame, and where its packet begins, behind a tag."""
    kind, at = struct.unpack("!H", frame[12:14])[0], 14
    if kind == VLAN:
        kind, at = struct.unpack("!H", frame[16:18])[0], 18
    return kind, at


def _mask_icmp(frame: bytearray) -> bool:
    """Without what Linux chooses for its errors; false: a redirect, of which Linux sends only some."""
    kind, at = _network(frame)
    if kind == IP6 and frame[at + 6] == ICMP6:
        return frame[at + 40] != REDIRECT6
    if kind == IP4 and frame[at + 9] == ICMP:
        frame[at + 4 : at + 6] = frame[at + 10 : at + 12] = bytes(2)
        return frame[at + 20] != REDIRECT4
    return True


def _is_summed(packet: bytes, kind: int, at: int) -> bool:
    """Whether the checksum of the UDP header at `at` is right."""
    n = struct.unpack("!H", packet[at + 4 : at + 6])[0]
    addresses = packet[12:20] if kind == IP4 else packet[8:40]
    pseudo = addresses + struct.pack("!II", n, UDP)
    return fold(pseudo + packet[at : at + n]) == 0xFFFF


def _flow(frame: bytes) -> bytes:
    """What all frames of a flow have in common; empty: there is no port in it, or Linux looks at more."""
    kind, at = _network(frame)
    if kind == IP4 and not struct.unpack("!H", frame[at + 6 : at + 8])[0] & 0x3FFF and frame[at + 9] != ICMP:
        return frame[:at] + frame[at + 9 : at + 10] + frame[at + 12 : at + 24]
    if kind == IP6 and frame[at + 6] != ICMP6:
        return frame[:at] + frame[at + 6 : at + 7] + frame[at + 8 : at + 44]
    return b""


@dataclass
class Marks:
    """Of one router."""

    most_ports: int  # of a flow: two if workers and Linux send some of its frames each
    ports: dict[bytes, set[int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    n_of_workers: int = 0  # outer packets from ports that only workers choose

    def forget(self) -> None:
        """Devices have changed."""
        self.ports.clear()

    def comparable(self, frame: bytes) -> bytes | None:
        """None: it is nothing that was sent to be compared."""
        if MAGIC not in frame:
            return None
        frame = frame.ljust(60, b"\0")  # as ports of dl3d do; a veth of Linux does not
        masked = bytearray(frame)
        kind, at = _network(frame)
        size = HEADER_BYTES.get(kind, 0)
        is_udp = bool(size) and frame[at + (9 if kind == IP4 else 6)] == UDP
        if is_udp and kind == IP4 and struct.unpack("!H", frame[at + 6 : at + 8])[0] & 0x3FFF:
            return self._fragment(masked, at)
        if not is_udp or struct.unpack("!H", frame[at + size + 2 : at + size + 4])[0] not in VXLAN_PORTS:
            return bytes(masked) if _mask_icmp(masked) else None
        inner = bytearray(frame[at + size + 16 :])
        if not _mask_icmp(inner):
            return None
        self._outer(masked, kind, at, at + size)
        return bytes(masked[: at + size + 16] + inner)

    def _fragment(self, masked: bytearray, at: int) -> bytes:
        """Of an outer packet, or of a host, whose id is the same anyway."""
        masked[at + 4 : at + 6] = masked[at + 10 : at + 12] = bytes(2)
        if not struct.unpack("!H", masked[at + 6 : at + 8])[0] & 0x1FFF:
            masked[at + 20 : at + 22] = masked[at + 26 : at + 28] = bytes(2)
        return bytes(masked)

    def _outer(self, masked: bytearray, kind: int, at: int, l4: int) -> None:
        whole = bytes(masked)
        if kind == IP4:
            if fold(whole[at : at + 20]) != 0xFFFF:
                self.wrong.append(f"IPv4 checksum of {whole.hex()}")
            masked[at + 4 : at + 6] = masked[at + 10 : at + 12] = bytes(2)
        port = struct.unpack("!H", whole[l4 : l4 + 2])[0]
        if port not in PORTS and port not in OWN_PORTS:
            self.wrong.append(f"source port of {whole.hex()}")
        self.n_of_workers += port >= FIRST_OF_WORKERS
        key = _flow(whole[l4 + 16 :])
        if key:
            found = self.ports.setdefault(whole[l4 + 8 : l4 + 16] + key, set())
            found.add(port)
            if len(found) > self.most_ports:
                self.wrong.append(f"source ports {found} of a flow: {whole.hex()}")
        if any(whole[l4 + 6 : l4 + 8]):
            if not _is_summed(whole[at:], kind, l4 - at):
                self.wrong.append(f"UDP checksum of {whole.hex()}")
            masked[l4 + 6 : l4 + 8] = b"\1\1"
        masked[l4 : l4 + 2] = bytes(2)
