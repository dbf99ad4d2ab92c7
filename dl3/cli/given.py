"""Options that are judged as they are read, before anybody is sought and anything is started."""

import os
import shlex
import shutil
from pathlib import Path

from dl3.cli.printing import err
from dl3.control.remote import Machine
from dl3.dut.wired import MOST_BYTES
from dl3.host.cores import listed, usable
from dl3.model.campaign import MOST_FRAME_BYTES
from dl3.model.fault import UsageFault
from dl3.model.stream import CAPTURE, MIXES
from dl3.record.journal import is_record
from dl3.record.reader import read

LEAST_BYTES = 64  # of a frame, with FCS


def frames_of(text: str) -> tuple[str, ...]:
    """Sizes and mixes, each once."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        is_number = word.isascii() and word.isdigit()
        if not (LEAST_BYTES <= int(word) <= MOST_FRAME_BYTES if is_number else word in (*MIXES, CAPTURE)):
            raise UsageFault(
                f"--sizes {text}: frames of {LEAST_BYTES} to {MOST_FRAME_BYTES} bytes (with FCS) and the mixes "
                f"{', '.join(MIXES)} are wanted, with commas, like 64,1518,imix; '{word}' is none"
            )
    return words


def refuse_beyond_lab(text: str) -> None:
    """Refuse what the lab's own streams and links do not carry."""
    for word in frames_of(text):
        if word == CAPTURE or (word.isdigit() and int(word) > MOST_BYTES):
            raise UsageFault(
                f"--sizes {text}: the lab sends frames of {LEAST_BYTES} to {MOST_BYTES} bytes and mixes, '{word}' is "
                "none: leave it out, or measure with a dl3gen of your own"
            )


def sizes(text: str) -> str:
    """--sizes as it was given, or a error."""
    frames_of(text)
    return text


def nearest(path: Path) -> Path:
    """Itself, or the first folder above it that is there; OSError where a folder may not be searched."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def writable(option: str, path: Path, is_replaced: bool = False) -> Path:
    """A file that may be written, or made; folders on the way to it are made later.

    One that is replaced is put together beside itself: its folder has to be writable, and not the file.
    """
    try:
        there = nearest(path)
        is_kind = there.is_dir() if there != path.absolute() else there.is_file()
        touched = nearest(path.absolute().parent) if is_replaced else there
        is_allowed = os.access(touched, os.W_OK | os.X_OK if touched.is_dir() else os.W_OK)
    except OSError as error:
        raise UsageFault(f"{option} {path} cannot be written: {error.strerror}; name another file") from error
    if not is_kind:
        why = "is no folder" if there != path.absolute() else "is no file"
        raise UsageFault(f"{option} {path} cannot be written: {there} {why}; name another file")
    if not is_allowed:
        raise UsageFault(f"{option} {path} cannot be written: {touched} may not be written; name another file")
    return path


def record(path: Path | None) -> Path | None:
    """--record as it was given: a file to begin, or a record; no line is added to a file of anything else."""
    try:
        if path is None or not path.exists() or is_record(path):
            return path and writable("--record", path)
    except OSError as error:
        raise UsageFault(f"--record {path} cannot be read: {error.strerror}; name another file") from error
    raise UsageFault(f"--record {path} is no record: name another file, or none for a new one")


def output(path: Path) -> Path:
    """--output as it was given."""
    return writable("--output", path, is_replaced=True)


def core(number: int) -> int:
    """--core as it was given: one that we may use."""
    if number not in usable():
        raise UsageFault(f"--core {number}: the processors here are {listed(usable())}; name one of them")
    return number


def machine(text: str) -> str:
    """--at as it was given: '' or an address."""
    try:
        if text:
            Machine.parse(text)
    except UsageFault as fault:
        raise UsageFault(f"--at {fault}") from fault
    return text


def command(text: str) -> str:
    """A command of the person's, whose program is there."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageFault(f"the command {text}: {error}; close its quotes") from error
    if words and not shutil.which(words[0]):
        raise UsageFault(
            f"the command {text}: there is no program '{words[0]}'; name one that can be run without a shell"
        )
    return text


def source(path: Path | None) -> Path | None:
    """--from as it was given: a record with a throughput; whose, is seen when it is known what is measured."""
    found = read(path) if path is not None else None
    if found and not found.answers:
        for sentence in found.left_out:
            err.print(sentence, markup=False, highlight=False, soft_wrap=True)
        raise UsageFault(f"{path} has no throughput in it: name a record that 'dl3 bench throughput' has finished")
    return path
