"""Routes and remote sessions: what the machine is managed through."""

import json
import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from dl3.host.tree import Tree
from dl3.model.fault import Fault
from dl3.model.noun import Noun

Address = IPv4Address | IPv6Address
LISTEN, ESTABLISHED = "0A", "01"
SSH = 22
WORD_BYTES = 4
REMOTE_FILES = re.compile(r"\bnfs4?\b")
SERVER = re.compile(r"\baddr=([0-9a-fA-F.:]+)")


class Route(Noun):
    """A route that matters: a default route, or one to a peer or to a local address of its session."""

    family: int
    destination: str  # PREFIX/LENGTH
    table: str
    devices: tuple[str, ...]
    is_local: bool = False


class Session(Noun):
    """A connection that must survive."""

    what: str  # ssh, NFS
    peer: str
    local: str | None = None


class Network(Noun):
    """None of `routes`: they could not be read, so that nothing is known of what manages the machine."""

    routes: tuple[Route, ...] | None = None
    sessions: tuple[Session, ...] = ()


def address_of(text: str) -> Address:
    """An address as /proc/net/tcp writes it: words of the machine's byte order, which is little-endian."""
    data = bytes.fromhex(text)
    words = [data[n : n + WORD_BYTES][::-1] for n in range(0, len(data), WORD_BYTES)]
    found = ip_address(b"".join(words))
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def hex_of(address: Address) -> str:
    """The inverse of address_of()."""
    data = address.packed
    return "".join(data[n : n + WORD_BYTES][::-1].hex().upper() for n in range(0, len(data), WORD_BYTES))


def sockets_in(text: str) -> list[tuple[str, str, str]]:
    """(local, remote, state) of each line, both as ADDRESS:PORT in hexadecimal."""
    rows = (line.split() for line in text.splitlines()[1:])
    return [(row[1], row[2], row[3]) for row in rows if len(row) > 3]


def only_ssh(text: str) -> str:
    """The header, and the established connections to port 22, without counters and owners."""
    head = text.partition("\n")[0]
    ours: list[str] = []
    for local, remote, state in sockets_in(text):
        if state == ESTABLISHED and int(local.partition(":")[2], 16) == SSH:
            ours.append(f"   {len(ours)}: {local} {remote} {state}\n")
    return f"{head}\n{''.join(ours)}"


def ssh_sessions(tree: Tree) -> list[Session]:
    """Established sessions of sshd."""
    found = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for local, remote, _ in sockets_in(tree.text(path, only_ssh) or ""):
            ends = [str(address_of(one.partition(":")[0])) for one in (local, remote)]
            found.append(Session(what="ssh", local=ends[0], peer=ends[1]))
    return found


def only_remote(text: str) -> str:
    """The mounts of remote file systems, without the names of folders."""
    rows = (line.split() for line in text.splitlines() if REMOTE_FILES.search(line))
    kept = [(SERVER.search(row[3]), row[2]) for row in rows if len(row) > 3]
    return "".join(f"remote /mnt {kind} {found[0]} 0 0\n" for found, kind in kept if found)


def mounts(tree: Tree) -> list[Session]:
    """Remote file systems."""
    text = tree.text("/proc/mounts", only_remote) or ""
    return [Session(what="NFS", peer=one) for one in SERVER.findall(text)]


def destination_of(family: int, text: str) -> str:
    """What `ip` calls 'default', or an address, as a prefix."""
    if text == "default":
        return "0.0.0.0/0" if family == 4 else "::/0"
    return str(ip_network(text, strict=False))


def routes_in(family: int, text: str) -> list[Route]:
    """The routes in the output of `ip`. Those without a device (blackhole) lead nowhere."""
    found = []
    for entry in json.loads(text or "[]"):
        hops = [entry, *entry.get("nexthops", [])]
        devices = tuple(dict.fromkeys(hop["dev"] for hop in hops if hop.get("dev")))
        if devices and entry.get("type", "unicast") in ("unicast", "local"):
            found.append(
                Route(
                    family=family,
                    destination=destination_of(family, entry["dst"]),
                    table=str(entry.get("table", "main")),
                    devices=devices,
                    is_local=entry.get("type") == "local",
                )
            )
    return found


def is_used(route: Route, addresses: frozenset[str]) -> bool:
    """Whether a route is a default route or leads to one of the addresses."""
    network = ip_network(route.destination)
    return network.prefixlen == 0 or any(ip_address(one) in network for one in addresses)


class OnlyUsed:
    """Keeps the routes of one family that are used; a full table of the Internet does not belong in a record."""

    def __init__(self, family: int, addresses: frozenset[str]) -> None:
        self.family, self.addresses = family, addresses

    def __call__(self, text: str) -> str:
        try:
            kept = [route for route in routes_in(self.family, text) if is_used(route, self.addresses)]
        except (ValueError, KeyError, TypeError) as error:
            raise Fault("the output of 'ip -json route' is not understood: use another version of iproute2") from error
        entries = [
            {
                "dst": route.destination,
                "table": route.table,
                **({"type": "local"} if route.is_local else {}),
                "nexthops": [{"dev": device} for device in route.devices],
            }
            for route in kept
        ]
        return json.dumps(entries, indent=1) + "\n"


def read_network(tree: Tree) -> Network:
    """Routes and sessions."""
    sessions = (*ssh_sessions(tree), *mounts(tree))
    ends = frozenset(end for one in sessions for end in (one.peer, one.local) if end)
    texts = [(family, tree.output(f"ip{family}-routes", OnlyUsed(family, ends))) for family in (4, 6)]
    if all(text is None for _, text in texts):
        return Network(sessions=sessions)
    routes = (route for family, text in texts for route in routes_in(family, text or ""))
    return Network(routes=tuple(routes), sessions=sessions)
