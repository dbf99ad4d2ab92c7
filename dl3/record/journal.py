"""Records on disk: one JSON line per trial, only ever appended."""

import errno
import io
import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dl3.model.fault import Fault
from dl3.record.facts import Facts

FULL = (errno.ENOSPC, errno.EDQUOT)
OF_TRIALS = b'{"kind":"'  # the beginning of a record's first line
OF_SAMPLES = b'{"at":"'


class Unwritable(Fault):
    """Nothing more can be recorded, so nothing more is to be measured."""


class DiskFull(Unwritable):
    """There is no room for more."""


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
    """This moment, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def spare_of(path: Path) -> Path:
    """The file beside a record that keeps room for its last line."""
    return path.with_name(f".{path.name}.spare")


def append(path: Path, noun: BaseModel) -> None:
    """Add one line, whole or not at all, and on the disk when this returns; behind half a line it begins a new one.

    On a full disk the spare (see dl3.record.spare) is given up for it: then it is written, and DiskFull is raised.
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
    """At the end; what was written of it is cut off again when it cannot be written whole."""
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
    """Make room with the spare, write the line, and say that it was the last one."""
    spare = spare_of(path)
    try:
        spare.unlink()
        add(path, line)
    except OSError:
        raise DiskFull(
            f"the disk is full, {path} cannot be written: make room; what was measured before is in it"
        ) from full
    raise DiskFull(f"the disk of {path} is full: make room; all that was measured is in it")


def ends_whole(file: io.RawIOBase) -> bool:
    """Whether a file is empty or ends with a line's end."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def is_record(path: Path) -> bool:
    """Whether a file begins as records do, or has nothing in it yet; OSError where it cannot be read."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begun = file.read(len(OF_TRIALS))
    return any(begun.startswith(word) or word.startswith(begun) for word in (OF_TRIALS, OF_SAMPLES))


def mend(path: Path) -> int:
    """Cut off half a line at the end that somebody was killed in; returns its bytes, 0 when there is none."""
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
