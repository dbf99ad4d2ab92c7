"""Linux does not move memory between nodes behind workers."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """Automatic NUMA balancing."""
    if facts.system.setting("/proc/sys/kernel/numa_balancing") not in (None, "0"):
        yield Finding(
            check="numa_balancing",
            severity=Severity.LOSS,
            what="automatic NUMA balancing is on",
            why="it unmaps pages to see who uses them, and the next access is a page fault of the worker",
            source="Linux, admin-guide/sysctl/kernel; Red Hat, tuned profile cpu-partitioning",
            remedy="'dl3 host plan' sets kernel.numa_balancing to 0",
        )
