"""Stops one thread of a program, as a debugger does, while its other threads continue."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
_WAIT_ALL = 0x40000000  # __WALL: any kind of thread
_libc = ctypes.CDLL(None, use_errno=True)


def _trace(request: int, thread: int) -> None:
    if _libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) != 0:
        raise OSError(ctypes.get_errno(), f"cannot hold thread {thread}")


@contextmanager
def stalled(thread: int) -> Iterator[None]:
    """Stops the thread with this id; it must be released by the same thread that called this."""
    _trace(PTRACE_SEIZE, thread)
    try:
        _trace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, _WAIT_ALL)
        yield
    finally:
        _trace(PTRACE_DETACH, thread)
