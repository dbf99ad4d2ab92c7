"""Records on disk: one JSON line per trial, only ever appended."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict

from dl3.model.fault import Fault
from dl3.record.facts import Facts


class Trial(BaseModel):
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


def append(path: Path, noun: BaseModel) -> None:
    """Add one line, at once; behind half a line that somebody was cut off in, it begins a new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            line = noun.model_dump_json().encode() + b"\n"
            file.write(line if ends_whole(file) else b"\n" + line)
    except OSError as error:
        raise Fault(f"the record {path} cannot be written: {error.strerror}") from error


def ends_whole(file: BinaryIO) -> bool:
    """Whether a file is empty or ends with a line's end."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
