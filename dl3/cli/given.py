"""Options that are checked while parsing, before any connection is made or anything is started."""

import os
import shlex
import shutil
from pathlib import Path

from dl3.bench.workplace import BUILD
from dl3.cli.printing import err
from dl3.control.remote import Machine
from dl3.dut.wired import MOST_BYTES
from dl3.host.cores import listed, usable
from dl3.model.campaign import MOST_FRAME_BYTES
from dl3.model.fault import UsageFault
from dl3.model.stream import CAPTURE, MIXES
from dl3.record.journal import is_record
from dl3.record.reader import read

RECORDS = BUILD / "records"  # the default folder of records, created with the first one
LEAST_BYTES = 64  # of a frame, including the FCS


def frames_of(text: str) -> tuple[str, ...]:
    """Sizes and mixes, without duplicates."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        is_number = word.isascii() and word.isdigit()
        if not (LEAST_BYTES <= int(word) <= MOST_FRAME_BYTES if is_number else word in (*MIXES, CAPTURE)):
            raise UsageFault(
                f"--sizes {text}: invalid size '{word}': expected frame sizes {LEAST_BYTES}..{MOST_FRAME_BYTES} (including "
                f"FCS) or {', '.join(MIXES)}; comma-separated, like 64,1518,imix"
            )
    return words


def refuse_beyond_lab(text: str) -> None:
    """Refuse what the lab's own streams and links do not carry."""
    for word in frames_of(text):
        if word == CAPTURE or (word.isdigit() and int(word) > MOST_BYTES):
            raise UsageFault(
                f"--sizes {text}: the lab does not support '{word}', only frames of {LEAST_BYTES} to {MOST_BYTES} bytes "
                "and mixes: omit it, or measure with a dl3gen of your own"
            )


def sizes(text: str) -> str:
    """Checks --sizes."""
    frames_of(text)
    return text


def nearest(path: Path) -> Path:
    """The path, or its first existing parent; OSError if a folder may not be searched."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def writable(option: str, path: Path, is_replaced: bool = False) -> Path:
    """Check that a file may be written or created; missing folders are created later.

    One that is replaced is put together beside itself: its folder has to be writable, and not the file.
    """
    try:
        there = nearest(path)
        is_kind = there.is_dir() if there != path.absolute() else there.is_file()
        touched = nearest(path.absolute().parent) if is_replaced else there
        is_allowed = os.access(touched, os.W_OK | os.X_OK if touched.is_dir() else os.W_OK)
    except OSError as error:
        raise UsageFault(f"{option} {path} cannot be written: {error.strerror}; choose another file") from error
    if not is_kind:
        why = "is not a folder" if there != path.absolute() else "is not a file"
        raise UsageFault(f"{option} {path} cannot be written: {there} {why}; choose another file")
    if not is_allowed:
        raise UsageFault(f"{option} {path} cannot be written: {touched} is not writable; choose another file")
    return path


def in_folder(path: Path | None) -> Path | None:
    """Checks --record: its folder must exist, except for the default folder of records."""
    if path is None or os.path.realpath(path.parent) == os.path.realpath(RECORDS):
        return path
    if not os.path.lexists(path.parent):
        raise UsageFault(f"--record {path}: the folder {path.parent} does not exist: create it, or choose another file")
    return path


def record(path: Path | None) -> Path | None:
    """Checks --record: a new file or a record; lines are never appended to any other file."""
    in_folder(path)
    try:
        if path is None or not path.exists() or is_record(path):
            return path and writable("--record", path)
    except OSError as error:
        raise UsageFault(f"--record {path} cannot be read: {error.strerror}; choose another file") from error
    raise UsageFault(f"--record {path} is not a record: choose another file, or omit it for a new one")


def output(path: Path) -> Path:
    """Checks --output."""
    return writable("--output", path, is_replaced=True)


def core(number: int) -> int:
    """Checks --core: it must be available to this process."""
    if number not in usable():
        raise UsageFault(f"--core {number}: not available; use one of {listed(usable())}")
    return number


def machine(text: str) -> str:
    """Checks --at: '' or an address."""
    try:
        if text:
            Machine.parse(text)
    except UsageFault as fault:
        raise UsageFault(f"--at {fault}") from fault
    return text


def command(text: str) -> str:
    """Checks a user's command, whose program must exist."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageFault(f"the command {text}: {error}; close its quotes") from error
    if words and not shutil.which(words[0]):
        raise UsageFault(
            f"the command {text}: program '{words[0]}' not found; specify one that can be run without a shell"
        )
    return text


def source(path: Path | None) -> Path | None:
    """Checks --from: a record with a throughput; the device is checked once it is known."""
    found = read(path) if path is not None else None
    if found and not found.results:
        for sentence in found.left_out:
            err.print(sentence, markup=False, highlight=False, soft_wrap=True)
        raise UsageFault(f"{path} contains no throughput: specify a complete record of 'dl3 bench throughput'")
    return path
