"""Remote sessions on this machine, found by what processes hold, whatever port they use. Reads /proc only.

A process has a session if it is a server or client of ssh, or if it holds the master side of a terminal, and has an
established TCP connection. Sessions whose connection no file shows (mosh, or ssh for a user who may not look into
sshd) are found by the environment of the caller and of the processes that started it; sudo removes it from its own.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from dl3.host.sockets import ESTABLISHED, address_of, rows_of
from dl3.model.noun import Noun

SSH = frozenset({"sshd", "sshd-session", "sshd-auth", "ssh", "dropbear", "tinysshd"})
TERMINALS = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
SOCKET = re.compile(r"socket:\[(\d+)\]")
CONNECTION = re.compile(r"SSH_CONNECTION=(\S+) \d+ (\S+) \d+")
Peers = dict[str, tuple[str, str]]  # (local, remote) address by inode


class RemoteSession(Noun):
    """A connection. `is_here`: in the network namespace of the reader."""

    what: str
    peer: str
    local: str
    is_here: bool = True


def established(net: Path) -> Peers:
    """Established TCP connections of a network namespace."""
    found: Peers = {}
    for name in ("tcp", "tcp6"):
        try:
            rows = rows_of((net / name).read_text(encoding="ascii"))
        except OSError:
            continue
        for row in rows:
            if row.state == ESTABLISHED and row.inode:
                found[row.inode] = (str(address_of(row.local)), str(address_of(row.remote)))
    return found


def held_by(process: Path) -> tuple[frozenset[str], bool]:
    """Inodes of the sockets that a process holds, and whether it holds the master side of a terminal."""
    try:
        targets = {os.readlink(one) for one in (process / "fd").iterdir()}  # noqa: PTH115 - of a link that may vanish
    except OSError:
        return frozenset(), False
    return frozenset(match[1] for one in targets if (match := SOCKET.fullmatch(one))), bool(targets & TERMINALS)


def name_of(process: Path) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return (process / "comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def namespace_of(process: Path) -> str | None:
    """The network namespace of a process; None if it may not be seen."""
    try:
        return os.readlink(process / "ns" / "net")  # noqa: PTH115 - the target is no path
    except OSError:
        return None


def by_sockets(proc: Path) -> Iterator[RemoteSession]:
    """Sessions by what processes hold."""
    here, tables = namespace_of(proc / "self"), dict[str | None, Peers]()
    for process in sorted(one for one in proc.iterdir() if one.name.isdigit()):
        name = name_of(process)
        sockets, has_terminal = held_by(process)
        if not sockets or not (name in SSH or has_terminal):
            continue
        namespace = namespace_of(process)
        if namespace not in tables:
            tables[namespace] = established(process / "net")
        peers = tables[namespace]
        for local, peer in (peers[inode] for inode in sorted(sockets) if inode in peers):
            what = "ssh" if name in SSH else f"'{name}'"
            yield RemoteSession(what=what, peer=peer, local=local, is_here=namespace == here)


def parents(proc: Path) -> Iterator[Path]:
    """The calling process, and those that started it."""
    number = "self"
    while number != "0":
        yield proc / number
        try:
            number = (proc / number / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
        except (OSError, IndexError):
            return


def by_environment(proc: Path) -> Iterator[RemoteSession]:
    """Sessions in which the command was started."""
    for process in parents(proc):
        try:
            text = (process / "environ").read_text(errors="replace")
        except OSError:
            continue
        for one in text.split("\0"):
            match = CONNECTION.fullmatch(one)
            if match:
                yield RemoteSession(what="ssh", peer=match[1], local=match[2])


def remote_sessions(proc: Path = Path("/proc")) -> tuple[RemoteSession, ...]:
    """All sessions, each once."""
    return tuple(dict.fromkeys((*by_sockets(proc), *by_environment(proc))))


def remote_sessions_text() -> str:
    """The same as an output that a record contains: no names of users, processes or ports."""
    return json.dumps([one.model_dump(mode="json") for one in remote_sessions()], indent=1) + "\n"
