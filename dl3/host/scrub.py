"""Replaces what identifies a machine and its users: addresses, host names, serial numbers. The same text is always
replaced by the same one within a record, and addresses that share a prefix still do.
"""

import re
from dataclasses import dataclass
from hashlib import blake2s
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from dl3.host.sockets import Address, address_of, hex_of

KEPT_BITS = 4  # of an address, so that it stays of its kind
LINK_LOCAL_BITS = 64
MAC = re.compile(r"(?<![0-9A-Fa-f:-])(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:-])")
BOOT_MAC = re.compile(r"(?<=BOOTIF=01-)[0-9A-Fa-f-]{17}")
NAMED_MAC = re.compile(r"(?<=enx)[0-9a-f]{12}")
UUID = re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
MACHINE_ID = re.compile(r"\b[0-9a-f]{32}\b")
IP4 = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?:/(\d{1,2}))?(?![\w.])")
IP6 = re.compile(r"(?<![\w:.])([0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)(?:/(\d{1,3}))?(?![\w:.])")
HEX_SOCKET = re.compile(r"\b([0-9A-F]{8}|[0-9A-F]{32}):(?=[0-9A-F]{4}\b)")
HIDDEN = re.compile(
    r"""(?i)((?<![\w.])(?:[\w.-]*(?:pass|token|secret|auth|hostname|iscsi)[\w.-]*|nfsroot|netroot|ip|nameserver|rd\.lvm\.\w+)=)[^\s"']+"""
)
VOLUME = re.compile(r"(?<=/dev/mapper/)[^\s\"']+|(?<=/dev/disk/by-id/)[^\s\"']+")


def name_pattern(name: str) -> re.Pattern[str]:
    """A host name where it stands alone."""
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w./=-])", re.IGNORECASE)


@dataclass(frozen=True)
class Scrubber:
    """`key` is forgotten after the record, so that nothing can be reversed. `names`: the machine's host names."""

    key: bytes
    names: tuple[str, ...] = ()

    def digits(self, text: str, n: int) -> str:
        """`n` hexadecimal digits that stand for a text."""
        return blake2s(text.lower().encode(), key=self.key).hexdigest()[:n]

    def flips(self, width: int, bits: int, kept: int) -> int:
        """Which bits of an address change: each depends on those before it."""
        found = 0
        for n in range(kept, width):
            prefix = bits >> (width - n)
            digest = blake2s(f"{width} {n} {prefix:x}".encode(), key=self.key, digest_size=1).digest()
            found |= (digest[0] & 1) << (width - 1 - n)
        return found

    def address(self, one: Address) -> Address:
        """Another address. Those that belong to no machine stay as they are."""
        if one.is_loopback or one.is_unspecified or one.is_multicast or str(one) == "255.255.255.255":
            return one
        kept = LINK_LOCAL_BITS if one.version == 6 and one.is_link_local else KEPT_BITS
        bits = int(one) ^ self.flips(one.max_prefixlen, int(one), kept)
        return IPv4Address(bits) if one.version == 4 else IPv6Address(bits)

    def prefix(self, match: re.Match[str]) -> str:
        """A match of an address, with or without a length."""
        try:
            one = ip_address(match[1])
        except ValueError:
            return match[0]
        if match[2] is None:
            return str(self.address(one))
        try:
            is_network = str(ip_network(match[0])) != ""
        except ValueError:
            is_network = False
        other = self.address(one)
        return str(ip_network((other, int(match[2])), strict=False)) if is_network else f"{other}/{match[2]}"

    def mac(self, match: re.Match[str]) -> str:
        """A locally administered MAC address."""
        separator = match[1] if match.re is MAC else "-"
        digits = self.digits(match[0].replace("-", ":"), 10)
        return separator.join(("02", *(digits[n : n + 2] for n in range(0, 10, 2))))

    def uuid(self, match: re.Match[str]) -> str:
        """Another UUID."""
        digits = self.digits(match[0], 32)
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def text(self, text: str) -> str:
        """A text, or a path, without what identifies."""
        text = HIDDEN.sub(r"\1hidden", text)
        text = VOLUME.sub("volume", text)
        text = BOOT_MAC.sub(self.mac, text)
        text = MAC.sub(self.mac, text)
        text = NAMED_MAC.sub(lambda match: "02" + self.digits(match[0], 10), text)
        text = UUID.sub(self.uuid, text)
        text = MACHINE_ID.sub(lambda match: self.digits(match[0], 32), text)
        text = IP6.sub(self.prefix, IP4.sub(self.prefix, text))
        for n, name in enumerate(self.names, 1):
            text = name_pattern(name).sub(f"host{n}", text)
        return text

    def sockets(self, text: str) -> str:
        """/proc/net/tcp, with addresses in hexadecimal."""
        return HEX_SOCKET.sub(lambda match: hex_of(self.socket(match[1])) + ":", text)

    def socket(self, digits: str) -> Address:
        """An address of /proc/net/tcp; one of IPv4 in IPv6 keeps its form."""
        other = self.address(address_of(digits))
        is_mapped = other.version == 4 and len(digits) > 8
        return IPv6Address(f"::ffff:{other}") if is_mapped else other
