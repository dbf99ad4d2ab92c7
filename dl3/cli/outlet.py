"""Standard output: makes sure that it is open, and that everything is flushed before a command exits."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dl3.model.fault import Fault, UsageFault

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)
STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))  # writes to it fail


def fill_gaps() -> None:
    """Open standard streams that the caller has closed, so that no file or socket of ours takes their place."""
    for number, (name, flags) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, flags), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def unwritten_fault(error: OSError) -> str:
    """Why not everything could be written, and what to do about it."""
    if error.errno == errno.EBADF:
        return "standard output is closed: redirect it, for example to /dev/null"
    return f"output is incomplete: {error.strerror}; free some space, or redirect standard output"


@contextmanager
def written(code: int = 1) -> Iterator[None]:
    """Flushes what is printed inside, or raises; exits with `code` if the reader is gone."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the rest would fail again at exit
        if error.errno == errno.EPIPE:
            sys.exit(code)  # the reader is gone
        raise Fault(unwritten_fault(error)) from error


@contextmanager
def judging() -> Iterator[None]:
    """For a command whose exit status 1 is a result: any failure exits with 2."""
    try:
        with written(2):
            yield
    except Fault as fault:
        raise UsageFault(str(fault)) from fault
