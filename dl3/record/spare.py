"""Room that is kept beside a record, so that a disk that fills cannot take the trial that was just made."""

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
    """Keep the spare for as long as somebody measures, and keep others from writing to the same record."""
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
    """The record, to hold its lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileIO(path, "ab")
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> Unwritable:
    """Before anything is measured."""
    if error.errno in FULL:
        return DiskFull(f"the disk of {path} is full: make room, then go on")
    return Unwritable(f"the record {path} cannot be written: {error.strerror}")


def lock(file: int, path: Path) -> None:
    """Until the file is closed, also by being killed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageFault(f"another dl3 writes to {path}: let it end, or name another record") from error


def fill(spare: Path) -> None:
    """Bytes that the disk has to have; holes would not keep anything."""
    with spare.open("wb", buffering=0) as file:
        rest = os.urandom(SPARE_BYTES)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
