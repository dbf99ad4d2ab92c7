"""Memory that only some rows need: rows with millions of flows are left out where there is less."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dl3.bench.flows import FLOW_SETS, FlowFiles, FlowSet, memory_of_l3fwd
from dl3.bench.macs import MAC_SETS
from dl3.bench.norow import NoRow
from dl3.bench.sides import Entry, PairSettings
from dl3.host.hugepages import reserved
from dl3.model.fault import Fault

MEMINFO = Path("/proc/meminfo")
PAGE_MIB = 2
TABLE_PAGES = 256  # for the tables of the programs, in addition to EAL memory
KIB_PER_MIB = 1024
MIB_PER_GIB = 1024
MIB = 1 << 20
SPARE_MIB = 512  # for the system


def pages_of(terms: PairSettings, more_mib: int = 0) -> int:
    """Huge pages for both programs."""
    return (2 * terms.memory_mib + more_mib) // PAGE_MIB + TABLE_PAGES


def available_mib(meminfo: str) -> int:
    """Memory that programs can have, and reserved huge pages that are free."""
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in meminfo.splitlines())}
    pages_kib = found.get("HugePages_Free", 0) * found.get("Hugepagesize", 0)
    return (found.get("MemAvailable", 0) + pages_kib) // KIB_PER_MIB


def in_huge_pages(entries: Iterable[Entry], terms: PairSettings) -> int:
    """MiB of EAL memory beyond what both programs of every row have."""
    exact = (entry for entry in entries if entry.flows and entry.program == "l3fwd exact match")
    return sum(memory_of_l3fwd(FLOW_SETS[entry.flows], terms) - terms.memory_mib for entry in exact)


def beside_huge_pages(entry: Entry) -> int:
    """MiB of a program with flows or MAC addresses that are not EAL's."""
    if entry.macs:
        macs = MAC_SETS[entry.macs]
        return macs.table_mib + (macs.ovs_mib if entry.program.startswith("Open vSwitch") else macs.dl3d_mib)
    if not entry.flows:
        return 0
    flow_set: FlowSet = FLOW_SETS[entry.flows]
    return flow_set.table_mib + (0 if entry.program == "l3fwd exact match" else flow_set.dl3d_mib)


def check_enough(name: str, what: str, needed_mib: int, there_mib: int) -> None:
    """NoRow with how much is missing."""
    if needed_mib > there_mib:
        needed, missing = (mib / MIB_PER_GIB for mib in (needed_mib, needed_mib - there_mib))
        raise NoRow(f"no row {name}: it needs {needed:.1f} GiB of {what}, {missing:.1f} GiB more than are available")


def disk_mib(entries: Iterable[Entry]) -> tuple[int, int]:
    """MiB of files that are yet to be written, and MiB available for them."""
    needed, there = 0, 0
    for flows, n_hops in {(entry.flows, entry.n_hops) for entry in entries if entry.flows}:
        files = FlowFiles(flows, n_hops)
        files.folder.mkdir(parents=True, exist_ok=True)
        free = os.statvfs(files.folder)
        there = free.f_bavail * free.f_frsize // MIB
        needed += 0 if files.are_there else FLOW_SETS[flows].disk_mib
    return needed, there


@contextmanager
def space_for(name: str, entries: tuple[Entry, Entry], terms: PairSettings) -> Iterator[None]:
    """Reserve the row's huge pages; NoRow if there is not enough memory or disk space for the row."""
    if not any(entry.flows or entry.macs for entry in entries):
        yield
        return
    more = in_huge_pages(entries, terms)
    needed = pages_of(terms, more) * PAGE_MIB + sum(map(beside_huge_pages, entries)) + SPARE_MIB
    check_enough(name, "memory", needed, available_mib(MEMINFO.read_text(encoding="ascii")))
    check_enough(name, "disk space in build/tables", *disk_mib(entries))
    with ExitStack() as stack:
        try:
            stack.enter_context(reserved(pages_of(terms, more)))
        except Fault as fault:
            raise NoRow(f"no row {name}: {fault}") from fault
        yield
