"""Sockets as /proc/net/tcp and tcp6 print them."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from dl3.model.noun import Noun

Address = IPv4Address | IPv6Address
ESTABLISHED = "01"
WORD_BYTES = 4
INODE = 9  # column


class SocketRow(Noun):
    """One line; both ends as ADDRESS:PORT in hexadecimal. `inode`: empty in records, which leave it out."""

    local: str
    remote: str
    state: str
    inode: str = ""

    @property
    def local_port(self) -> int:
        """The port of this machine."""
        return int(self.local.partition(":")[2], 16)


def address_of(text: str) -> Address:
    """An address, with or without its port: words of the machine's byte order, which is little-endian."""
    data = bytes.fromhex(text.partition(":")[0])
    words = [data[n : n + WORD_BYTES][::-1] for n in range(0, len(data), WORD_BYTES)]
    found = ip_address(b"".join(words))
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def hex_of(address: Address) -> str:
    """The inverse of address_of()."""
    data = address.packed
    return "".join(data[n : n + WORD_BYTES][::-1].hex().upper() for n in range(0, len(data), WORD_BYTES))


def rows_of(text: str) -> list[SocketRow]:
    """All lines except the header."""
    rows = (line.split() for line in text.splitlines()[1:])
    return [
        SocketRow(local=row[1], remote=row[2], state=row[3], inode=row[INODE] if len(row) > INODE else "")
        for row in rows
        if len(row) > 3
    ]
