"""Disk space reserved next to a record, so that a full disk cannot lose the trial that was just made."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from dl3.model.fault import UsageFault
from dl3.record.journal import FULL, DiskFull, Unwritable, spare_of

SPARE_BYTES = 1 << 20  # several trials with all their evidence


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """Hold the spare file and an exclusive lock on the record while a measurement runs."""
    with opened(path) as record:
        lock(record.fileno(), path)
        try:
            try:
                fill(spare_of(path))
            except OSError as error:
                raise unwritable(path, error) from error
            yield
        finally:
            with suppress(OSError):
                spare_of(path).unlink()


def opened(path: Path) -> FileIO:
    """Open the record to hold its lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileIO(path, "ab")
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> Unwritable:
    """The error for a record that is unwritable before the measurement starts."""
    if error.errno in FULL:
        return DiskFull(f"the disk of {path} is full: free some space, then continue")
    return Unwritable(f"the record {path} cannot be written: {error.strerror}")


def lock(file: int, path: Path) -> None:
    """Held until the file is closed, also when the process is killed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageFault(
            f"another dl3 is writing to {path}: wait for it to finish, or choose another record"
        ) from error


def fill(spare: Path) -> None:
    """Fill with real data: a sparse file would not reserve space."""
    with spare.open("wb", buffering=0) as file:
        rest = os.urandom(SPARE_BYTES)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
