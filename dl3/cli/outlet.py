"""Standard output: that it is there, and that what was printed is out before a command leaves."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dl3.model.fault import Fault, UsageFault

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)
STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))  # to stdout nothing can be written


def fill_gaps() -> None:
    """Open what whoever started us has closed, so that no file or socket of ours takes its place."""
    for number, (name, flags) in enumerate(STREAMS):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, flags), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def unwritten_fault(error: OSError) -> str:
    """Why not all could be written, and what to do about it."""
    if error.errno == errno.EBADF:
        return "standard output is closed: send it somewhere, to /dev/null where nobody wants it"
    return f"not all could be written: {error.strerror}; make room, or send standard output elsewhere"


@contextmanager
def written(code: int = 1) -> Iterator[None]:
    """What is printed in here is out at its end, or is complained about; with `code` for a reader that left."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail again at the exit
        if error.errno == errno.EPIPE:
            sys.exit(code)  # it hears nothing
        raise Fault(unwritten_fault(error)) from error


@contextmanager
def judging() -> Iterator[None]:
    """For a method that leaves with 1 as its answer: with whatever stands in its way it leaves with 2."""
    try:
        with written(2):
            yield
    except Fault as fault:
        raise UsageFault(str(fault)) from fault
