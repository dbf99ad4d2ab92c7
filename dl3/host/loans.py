"""Notes of how many huge pages a lab added, in files that are locked while it lives: so the next one can give them back
for one that was killed.

A note says 'minus N' when N pages were added, and 'to N' while the number of all pages is being changed: down to N it
must go if that is cut short.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dl3.host.private import candidates, safe_parent

LONGEST = 32  # bytes of a note, spaces behind it included


def folder_of(page_kib: int) -> Path:
    """Of all notes about pages of that size."""
    return safe_parent(candidates()) / "dl3-hugepages" / str(page_kib)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other lab reads or changes notes or the number of pages meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Note:
    """One file, locked by us until it is gone."""

    path: Path
    descriptor: int

    @classmethod
    def new(cls, folder: Path) -> "Note":
        """It has our process in its name, for people who look at it."""
        descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(Path(name), descriptor)

    def write(self, word: Literal["minus", "to"], pages: int) -> None:
        """In place of what it said."""
        os.pwrite(self.descriptor, f"{word} {pages}".ljust(LONGEST).encode("ascii"), 0)

    def target(self, now: int) -> int:
        """What the number of all pages, which is `now` so high, is to be without it."""
        word, _, pages = os.pread(self.descriptor, LONGEST, 0).decode("ascii").partition(" ")
        if not pages:  # its lab was killed before it did anything
            return now
        return min(now, int(pages)) if word == "to" else max(0, now - int(pages))

    def remove(self) -> None:
        """It is settled."""
        self.path.unlink()
        os.close(self.descriptor)


def orphans(folder: Path) -> list[Note]:
    """Notes of labs that live no more, locked by us now; the one of a change that was cut short comes first."""
    found = []
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            found.append(Note(path, descriptor))
    return sorted(found, key=lambda note: os.pread(note.descriptor, 1, 0), reverse=True)
