"""Notes of how many huge pages a lab added, in files that stay locked while the lab runs. The next lab uses them to
release the pages of a lab that was killed.

A note is 'minus N' if N pages were added, and 'to N' while the total number of pages is being changed: if that is
interrupted, the number must be reduced to N. A reboot invalidates all notes.
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
LONGEST = 32  # size of a note in bytes, including padding
WRITTEN = re.compile(rb"(minus|to) (\d+) *")


def folder_of_boot(name: str, why: str) -> Path:
    """A folder for notes that are only valid until reboot; safe folders are not always cleared at boot. `why` explains
    in errors why the folder must be safe.
    """
    return safe_parent(candidates(), why) / name / BOOT.read_text(encoding="ascii").strip()


def folder_of(page_kib: int) -> Path:
    """The folder of notes for this page size."""
    return folder_of_boot("dl3-hugepages", WHY_SAFE) / str(page_kib)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock: no other lab reads or changes notes or the number of pages."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Note:
    """A note file, locked until it is closed."""

    path: Path
    descriptor: int

    @classmethod
    def new(cls, folder: Path) -> "Note":
        """Create a note; its name contains our pid, for inspection."""
        descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(Path(name), descriptor)

    def write(self, word: Literal["minus", "to"], pages: int) -> None:
        """Replace the contents."""
        os.pwrite(self.descriptor, f"{word} {pages}".ljust(LONGEST).encode("ascii"), 0)

    def target(self, now: int) -> int:
        """The total number of pages without this note's pages, given the current total."""
        found = WRITTEN.fullmatch(os.pread(self.descriptor, LONGEST, 0))
        if not found:  # its lab was killed before it changed anything, or it is not a note
            return now
        word, pages = found[1], int(found[2])
        return min(now, pages) if word == b"to" else max(0, now - pages)

    def remove(self) -> None:
        """Delete the note once it is settled."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock; a note that still exists then counts as orphaned."""
        os.close(self.descriptor)


@contextmanager
def orphans(folder: Path) -> Iterator[list[Note]]:
    """Notes of labs that no longer run, locked meanwhile; notes of interrupted changes come first."""
    with ExitStack() as stack:
        found = []
        for path in folder.iterdir():
            descriptor = os.open(path, os.O_RDWR)
            stack.callback(os.close, descriptor)
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(Note(path, descriptor))
        yield sorted(found, key=lambda note: os.pread(note.descriptor, 1, 0), reverse=True)
