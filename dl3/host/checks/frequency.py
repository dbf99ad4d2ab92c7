"""Cores run at a constant, high frequency."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import named


def check(facts: Facts) -> Iterator[Finding]:
    """The governor of each CPU."""
    slow = frozenset(cpu.number for cpu in facts.cpus.online if cpu.governor not in (None, "performance"))
    if slow:
        governors = sorted({cpu.governor or "" for cpu in facts.cpus.online if cpu.number in slow})
        yield Finding(
            check="frequency",
            severity=Severity.SPEED,
            what=f"the frequency governor of {named(slow)} is {' or '.join(governors)}",
            why="the frequency follows the load after some milliseconds: the first frames of a burst meet a slow core",
            source="white paper, BIOS tables (P-states); Intel, Performance Tuning for DPDK",
            remedy="'dl3 host plan' sets the governor to performance, which is reversible while running; intel_pstate=disable is not",
        )
