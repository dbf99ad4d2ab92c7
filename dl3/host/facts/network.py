"""Routes and remote sessions: what the machine is managed through."""

import json
import re
from ipaddress import ip_address, ip_network

from dl3.host.remote import RemoteSession
from dl3.host.sockets import ESTABLISHED, address_of, rows_of
from dl3.host.tree import SESSIONS, Tree
from dl3.model.fault import Fault
from dl3.model.noun import Noun

SSH = 22
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

    what: str  # ssh, NFS, or the name of a program in quotes
    peer: str
    local: str | None = None
    device: str | None = None  # of a link-local address
    is_here: bool = True  # or in another network namespace


class Network(Noun):
    """None of `routes`: they could not be read, so that nothing is known of what manages the machine."""

    routes: tuple[Route, ...] | None = None
    sessions: tuple[Session, ...] = ()


def only_ssh(text: str) -> str:
    """The header, and the established connections to port 22, without counters and owners."""
    head = text.partition("\n")[0]
    ours = [row for row in rows_of(text) if row.state == ESTABLISHED and row.local_port == SSH]
    return f"{head}\n" + "".join(f"   {n}: {row.local} {row.remote} {row.state}\n" for n, row in enumerate(ours))


def sessions_on_port(tree: Tree) -> list[Session]:
    """Established connections to the port of ssh: those that any user can see."""
    return [
        Session(what="ssh", local=str(address_of(row.local)), peer=str(address_of(row.remote)))
        for path in ("/proc/net/tcp", "/proc/net/tcp6")
        for row in rows_of(tree.text(path, only_ssh) or "")
    ]


def remote_sessions(tree: Tree) -> list[Session]:
    """Sessions by what processes hold, and those in which the command was started."""
    try:
        entries = [RemoteSession.model_validate(one) for one in json.loads(tree.output(SESSIONS) or "[]")]
    except (ValueError, TypeError) as error:
        raise Fault("the remote sessions of this record are damaged: make it again with 'dl3 host record'") from error
    found = []
    for one in entries:
        peer, _, device = one.peer.partition("%")
        local = one.local.partition("%")[0]
        found.append(Session(what=one.what, peer=peer, local=local, device=device or None, is_here=one.is_here))
    return found


def all_sessions(tree: Tree) -> tuple[Session, ...]:
    """Each once."""
    return tuple(dict.fromkeys((*sessions_on_port(tree), *remote_sessions(tree), *mounts(tree))))


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
    sessions = all_sessions(tree)
    ends = frozenset(end for one in sessions for end in (one.peer, one.local) if end and one.is_here)
    texts = [(family, tree.output(f"ip{family}-routes", OnlyUsed(family, ends))) for family in (4, 6)]
    if all(text is None for _, text in texts):
        return Network(sessions=sessions)
    routes = (route for family, text in texts for route in routes_in(family, text or ""))
    return Network(routes=tuple(routes), sessions=sessions)
