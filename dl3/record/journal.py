"""Append-only records on disk: one JSON line per trial."""

import errno
import io
import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.model.fault import Fault
from dl3.record.facts import Facts

FULL = (errno.ENOSPC, errno.EDQUOT)
OF_TRIALS = b'{"kind":"'  # start of a record's first line
OF_SAMPLES = b'{"at":"'


class Unwritable(Fault):
    """The record cannot be written, so no further measurement may run."""


class DiskFull(Unwritable):
    """The disk is full."""


class SampleRecord(BaseModel):
    """One sample of one program."""

    model_config = ConfigDict(frozen=True)

    at: str
    name: str
    command: list[str]
    environment: dict[str, str]
    core: int
    seconds: float
    core_share: float
    received_pps: float
    sent_pps: float
    cycles_per_packet: float
    facts: Facts


def now() -> str:
    """The current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def spare_of(path: Path) -> Path:
    """The file next to a record that reserves space for its last line."""
    return path.with_name(f".{path.name}.spare")


def append(path: Path, noun: BaseModel) -> None:
    """Append one line, atomically and synced to disk. If the file ends in an incomplete line, a new line is started.

    On a full disk the spare file (see dl3.record.spare) is deleted to make room: the line is written and DiskFull is
    raised.
    """
    line = noun.model_dump_json().encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        add(path, line)
    except OSError as error:
        if error.errno not in FULL:
            raise Unwritable(f"the record {path} cannot be written: {error.strerror}") from error
        write_into_spare(path, line, error)


def add(path: Path, line: bytes) -> None:
    """Append at the end; a partially written line is removed again."""
    with path.open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        rest = line if ends_whole(file) else b"\n" + line
        try:
            while rest:
                rest = rest[file.write(rest) or 0 :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise


def write_into_spare(path: Path, line: bytes, full: OSError) -> None:
    """Free the spare file, write the line, and raise DiskFull."""
    spare = spare_of(path)
    try:
        spare.unlink()
        add(path, line)
    except OSError:
        raise DiskFull(
            f"the disk is full, {path} cannot be written: free some space; all earlier results are recorded"
        ) from full
    raise DiskFull(f"the disk of {path} is full: free some space; all results are recorded")


def ends_whole(file: io.RawIOBase) -> bool:
    """Whether a file is empty or ends with a newline."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def is_record(path: Path) -> bool:
    """Whether a file starts like a record or is empty; OSError if it cannot be read."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begun = file.read(len(OF_TRIALS))
    return any(begun.startswith(word) or word.startswith(begun) for word in (OF_TRIALS, OF_SAMPLES))


def mend(path: Path) -> int:
    """Remove an incomplete last line, left by a killed process; returns its size in bytes, or 0."""
    try:
        with path.open("r+b", buffering=0) as file:
            if ends_whole(file):
                return 0
            content = path.read_bytes()
            file.truncate(whole := content.rfind(b"\n") + 1)
            return len(content) - whole
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise Unwritable(f"the record {path} cannot be written: {error.strerror}") from error
