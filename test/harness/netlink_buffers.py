"""Shrinks a program's netlink socket buffer from outside, so that a few changes overrun it."""

import contextlib
import ctypes
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

PIDFD_GETFD = 438
SO_PROTOCOL, SO_RCVBUFFORCE = 38, 33
NETLINK_ROUTE = 0
TELLS_ROUTES = 1 << (7 - 1)  # RTNLGRP_IPV4_ROUTE among the groups that a socket has joined
SMALL_BYTES, USUAL_BYTES = 4096, 64 << 20
_libc = ctypes.CDLL(None, use_errno=True)


def _copied(process: int, entry: Path) -> socket.socket | None:
    """The same socket as a descriptor of ours; None if it is not a socket, or has been closed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        if str(entry.readlink()).startswith("socket:"):
            copy = _libc.syscall(PIDFD_GETFD, process, int(entry.name), 0)
            if copy >= 0:
                return socket.socket(fileno=copy)
            if ctypes.get_errno() != errno.EBADF:
                raise OSError(ctypes.get_errno(), f"cannot copy {entry}")
    return None


def _sockets(pid: int) -> Iterator[socket.socket]:
    """All sockets of the process."""
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if found := _copied(process, entry):
                with found:
                    yield found
    finally:
        os.close(process)


def _receives_routes(one: socket.socket) -> bool:
    is_route = one.family == socket.AF_NETLINK and one.getsockopt(socket.SOL_SOCKET, SO_PROTOCOL) == NETLINK_ROUTE
    return is_route and bool(one.getsockname()[1] & TELLS_ROUTES)


def _set_buffer(pid: int, option: int, size: int) -> None:
    listener = [one.setsockopt(socket.SOL_SOCKET, option, size) for one in _sockets(pid) if _receives_routes(one)]
    assert listener, "it receives route events on some socket"


def _throw_away(heard: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            heard.recv(1 << 16, socket.MSG_DONTWAIT)


@contextlib.contextmanager
def unread_socket(pid: int) -> Iterator[None]:
    """Messages about routes and neighbours sent meanwhile are lost; the process must be stopped."""
    yield
    for one in _sockets(pid):
        if _receives_routes(one):
            _throw_away(one)


@contextlib.contextmanager
def small_receive_buffer(pid: int) -> Iterator[None]:
    """Messages about routes soon overrun its buffer."""
    _set_buffer(pid, socket.SO_RCVBUF, SMALL_BYTES)
    try:
        yield
    finally:
        _set_buffer(pid, SO_RCVBUFFORCE, USUAL_BYTES)
