"""The fragments of an IPv4 packet as Linux makes them: a plain model, byte by byte."""

import struct

ETHERNET_BYTES = 14
DONT_FRAGMENT, MORE_FRAGMENTS, OFFSET = 0x4000, 0x2000, 0x1FFF
END, NOOP, COPIED = 0, 1, 0x80


def _checksum(header: bytes) -> int:
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _copied(options: bytes) -> bytes:
    """The options of a fragment other than the first: padding in place of those without the copied flag (RFC 791)."""
    made, at = bytearray(options), 0
    while at < len(options) and options[at] != END:
        if options[at] == NOOP:
            at += 1
            continue
        n_bytes = options[at + 1]
        if not options[at] & COPIED:
            made[at : at + n_bytes] = bytes([NOOP]) * n_bytes
        at += n_bytes
    return bytes(made)


def _header(packet: bytes, n_bytes: int, fragment: int, options: bytes) -> bytes:
    """The packet's header with another length, flags and offset, and options."""
    made = packet[:2] + struct.pack("!H", 20 + len(options) + n_bytes) + packet[4:6] + struct.pack("!H", fragment)
    made += packet[8:10] + bytes(2) + packet[12:20] + options
    return made[:10] + struct.pack("!H", _checksum(made)) + made[12:]


def fragments(packet: bytes, mtu: int) -> list[bytes]:
    """The fragments of a packet that is longer than `mtu`; the packet itself otherwise."""
    if len(packet) <= mtu:
        return [packet]
    n_header = (packet[0] & 15) * 4
    was = struct.unpack("!H", packet[6:8])[0]
    options, payload, made, start = packet[20:n_header], packet[n_header:], [], 0
    while start < len(payload):
        left = len(payload) - start
        n_bytes = left if n_header + left <= mtu else (mtu - n_header) // 8 * 8
        more = MORE_FRAGMENTS if n_bytes < left else was & MORE_FRAGMENTS
        kept = options if start == 0 or was & OFFSET else _copied(options)
        header = _header(packet, n_bytes, (was & OFFSET) + start // 8 | more, kept)
        made.append(header + payload[start : start + n_bytes])
        start += n_bytes
    return made
