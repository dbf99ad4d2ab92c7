"""Notes of how many huge pages a lab added, in files that are locked while it lives: so the next one can give them back
for one that was killed.

A note says 'minus N' when N pages were added, and 'to N' while the number of all pages is being changed: down to N it
must go if that is cut short. A reboot settles them all.
"""

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dl3.host.private import candidates, safe_parent

BOOT = Path("/proc/sys/kernel/random/boot_id")
WHY_SAFE = "notes of huge pages would not be safe there"
LONGEST = 32  # bytes of a note, spaces behind it included
WRITTEN = re.compile(rb"(minus|to) (\d+) *")


def folder_of_boot(name: str, why: str) -> Path:
    """For notes that a reboot settles; not every folder that is safe is empty after it. `error` it has to be safe."""
    return safe_parent(candidates(), why) / name / BOOT.read_text(encoding="ascii").strip()


def folder_of(page_kib: int) -> Path:
    """Of all notes about pages of that size."""
    return folder_of_boot("dl3-hugepages", WHY_SAFE) / str(page_kib)


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
    """One file, locked by us until we close it."""

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
        found = WRITTEN.fullmatch(os.pread(self.descriptor, LONGEST, 0))
        if not found:  # its lab was killed before it did anything, or it is nobody's
            return now
        word, pages = found[1], int(found[2])
        return min(now, pages) if word == b"to" else max(0, now - pages)

    def remove(self) -> None:
        """It is settled."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """If it is still there, it is one of a lab that lives no more."""
        os.close(self.descriptor)


@contextmanager
def orphans(folder: Path) -> Iterator[list[Note]]:
    """Notes of labs that live no more, locked by us meanwhile; the one of a change that was cut short comes first."""
    with ExitStack() as stack:
        found = []
        for path in folder.iterdir():
            descriptor = os.open(path, os.O_RDWR)
            stack.callback(os.close, descriptor)
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(Note(path, descriptor))
        yield sorted(found, key=lambda note: os.pread(note.descriptor, 1, 0), reverse=True)
