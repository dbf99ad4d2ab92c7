"""Huge pages for the duration of a measurement: reserved if there are too few, released afterwards.

The pages of a lab that was killed are released by the next one, before it reserves its own.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dl3.host.interrupts import Held
from dl3.host.loans import Note, alone, folder_of, orphans
from dl3.model.fault import Fault

USUAL_KIB = 2048
FOLDER = "/sys/kernel/mm/hugepages/hugepages-{}kB"
NUMBER = Path(FOLDER.format(USUAL_KIB)) / "nr_hugepages"
UNITS = {2048: "2 MiB", 1 << 20: "1 GiB"}


def of_size(page_kib: int) -> Path:
    """The kernel file with the number of pages of this size."""
    return Path(FOLDER.format(page_kib)) / NUMBER.name


def read_number(path: Path) -> int:
    """Read a number from a kernel file."""
    try:
        return int(path.read_text(encoding="ascii"))
    except OSError as error:
        raise Fault(f"this machine has no such huge pages ({path}: {error.strerror})") from error


def set_number(wanted: int, number: Path = NUMBER) -> None:
    """Request this total number of pages from the kernel."""
    try:
        number.write_text(f"{wanted}\n", encoding="ascii")
    except OSError as error:
        raise Fault(f"huge pages cannot be reserved ({error.strerror}): run as root, or reserve {wanted}") from error


def available_pages(meminfo: str, page_kib: int = USUAL_KIB) -> int:
    """Number of pages that fit into the available memory (in KiB in /proc/meminfo)."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // page_kib
    return 0


def settle(note: Note, number: Path) -> None:
    """Release the pages of a note and remove the note."""
    now = read_number(number)
    wanted = note.target(now)
    if wanted < now:
        note.write("to", wanted)
        set_number(wanted, number)
    note.remove()


def settle_all(folder: Path, number: Path, *own: Note) -> None:
    """Settle the notes of killed labs, then our own: a 'to N' is only valid until the next change. Notes that fail are
    left for others.
    """
    with ExitStack() as stack:
        for note in own:
            stack.callback(note.close)
        for note in (*stack.enter_context(orphans(folder)), *own):
            settle(note, number)


def check_memory(missing: int, page_kib: int) -> None:
    """Fault if more pages are requested than the available memory allows."""
    available = available_pages(Path("/proc/meminfo").read_text(encoding="ascii"), page_kib)
    if missing > available:
        raise Fault(
            f"{missing} more huge pages of {UNITS[page_kib]} needed, but memory is left for only {available}: request fewer"
        )


def add(missing: int, number: Path, note: Note) -> int:
    """Add pages, or as many as the kernel can provide; the note records the number actually added."""
    before = read_number(number)
    note.write("to", before)
    set_number(before + missing, number)
    added = read_number(number) - before
    note.write("minus", added)
    return added


def borrow(pages: int, page_kib: int, folder: Path) -> tuple[Note | None, int]:
    """Once all notes are settled, make sure that this many pages are free. Returns the note and the number of pages
    added.
    """
    number = of_size(page_kib)
    settle_all(folder, number)
    missing = pages - read_number(number.with_name("free_hugepages"))
    if missing <= 0:
        return None, 0
    check_memory(missing, page_kib)
    note = Note.new(folder)
    try:
        added = add(missing, number, note)
        if (found := read_number(number.with_name("free_hugepages"))) < pages:
            unit = UNITS[page_kib]
            raise Fault(
                f"only {found} of {pages} huge pages of {unit} could be reserved: memory is short or fragmented"
            )
    except BaseException:
        settle_all(folder, number, note)
        raise
    return note, added


def give_back(note: Note, folder: Path, number: Path) -> None:
    """Release the pages of our note."""
    with alone(folder):
        settle_all(folder, number, note)


@contextmanager
def reserved(pages: int, page_kib: int = USUAL_KIB) -> Iterator[int]:
    """Make sure that this many pages of a size are free; yields the number of pages added."""
    number = of_size(page_kib)
    if read_number(number.with_name("free_hugepages")) >= pages and not os.access(number, os.W_OK):
        yield 0  # no permission to add or release pages
        return
    folder = folder_of(page_kib)
    with ExitStack() as ends:
        with Held(), alone(folder):
            note, added = borrow(pages, page_kib, folder)
            if note:
                ends.callback(give_back, note, folder, number)
        yield added
