"""Huge pages for the time of a measurement: reserved when there are too few, given back afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dl3.model.fault import Fault

USUAL_KIB = 2048
FOLDER = "/sys/kernel/mm/hugepages/hugepages-{}kB"
NUMBER = Path(FOLDER.format(USUAL_KIB)) / "nr_hugepages"
UNITS = {2048: "2 MiB", 1 << 20: "1 GiB"}


def of_size(page_kib: int) -> Path:
    """Where the kernel says how many pages of that size there are."""
    return Path(FOLDER.format(page_kib)) / NUMBER.name


def read_number(path: Path) -> int:
    """A number of the kernel's."""
    try:
        return int(path.read_text(encoding="ascii"))
    except OSError as error:
        raise Fault(f"this machine has no such huge pages ({path}: {error.strerror})") from error


def set_number(wanted: int, number: Path = NUMBER) -> None:
    """Ask the kernel for so many pages in all."""
    try:
        number.write_text(f"{wanted}\n", encoding="ascii")
    except OSError as error:
        raise Fault(f"huge pages cannot be reserved ({error.strerror}): run as root, or reserve {wanted}") from error


def available_pages(meminfo: str, page_kib: int = USUAL_KIB) -> int:
    """Pages that the kernel could make of the memory that is available (in KiB in /proc/meminfo)."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // page_kib
    return 0


@contextmanager
def reserved(pages: int, page_kib: int = USUAL_KIB) -> Iterator[int]:
    """See to it that so many pages of a size are free; yields how many were added."""
    number, unit = of_size(page_kib), UNITS[page_kib]
    free = number.with_name("free_hugepages")
    missing = pages - read_number(free)
    if missing <= 0:
        yield 0
        return
    if missing > (available := available_pages(Path("/proc/meminfo").read_text(encoding="ascii"), page_kib)):
        raise Fault(f"{missing} more huge pages of {unit} are wanted, memory is left for {available}: ask for fewer")
    before = read_number(number)
    set_number(before + missing, number)
    added = read_number(number) - before
    try:
        if (found := read_number(free)) < pages:
            raise Fault(f"only {found} of {pages} huge pages of {unit} could be reserved: memory is short or in pieces")
        yield added
    finally:
        set_number(max(0, read_number(number) - added), number)  # others may have done the same meanwhile
