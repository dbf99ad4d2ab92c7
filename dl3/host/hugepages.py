"""Huge pages for the time of a measurement: reserved when there are too few, given back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dl3.model.fault import Fault

NUMBER = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
FREE = NUMBER.with_name("free_hugepages")


def read_number(path: Path) -> int:
    """A number of the kernel's."""
    try:
        return int(path.read_text(encoding="ascii"))
    except OSError as error:
        raise Fault(f"this machine has no 2 MiB huge pages ({path}: {error.strerror})") from error


def set_number(wanted: int) -> None:
    """Ask the kernel for so many pages in all."""
    try:
        NUMBER.write_text(f"{wanted}\n", encoding="ascii")
    except OSError as error:
        raise Fault(f"huge pages cannot be reserved ({error.strerror}): run as root, or reserve {wanted}") from error


def available_pages(meminfo: str) -> int:
    """2 MiB pages that the kernel could make of the memory that is available (in KiB in /proc/meminfo)."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 2048
    return 0


@contextmanager
def reserved(pages: int) -> Iterator[int]:
    """See to it that so many 2 MiB pages are free; yields how many were added."""
    missing = pages - read_number(FREE)
    if missing <= 0:
        yield 0
        return
    if missing > (available := available_pages(Path("/proc/meminfo").read_text(encoding="ascii"))):
        raise Fault(f"{missing} more huge pages of 2 MiB are wanted, memory is left for {available}: ask for fewer")
    before = read_number(NUMBER)
    set_number(before + missing)
    added = read_number(NUMBER) - before
    try:
        if (free := read_number(FREE)) < pages:
            raise Fault(f"only {free} of {pages} huge pages of 2 MiB could be reserved: memory is short or in pieces")
        yield added
    finally:
        set_number(max(0, read_number(NUMBER) - added))  # others may have reserved or given back meanwhile
