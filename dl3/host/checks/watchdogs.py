"""No watchdog interrupts workers."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """The hard lockup detector uses an NMI, the soft one a thread per CPU."""
    on = [name for name in ("nmi_watchdog", "watchdog") if facts.system.setting(f"/proc/sys/kernel/{name}") == "1"]
    if on:
        yield Finding(
            check="watchdogs",
            severity=Severity.SPEED,
            what=f"kernel.{' and kernel.'.join(on)} {'are' if len(on) > 1 else 'is'} on",
            why="the hard lockup detector sends an NMI to each CPU, also to isolated ones, and takes a performance counter",
            source="Red Hat, tuned profile cpu-partitioning (nosoftlockup); Linux, admin-guide/lockup-watchdogs",
            remedy="'dl3 host plan' sets both to 0 by a file in sysctl.d",
        )
