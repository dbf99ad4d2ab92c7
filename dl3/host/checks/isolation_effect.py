"""What isolcpus= asks for is what the kernel isolated."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import asked, named


def check(facts: Facts) -> Iterator[Finding]:
    """The parameter beside /sys/devices/system/cpu/isolated."""
    value, online = facts.kernel.value("isolcpus"), frozenset(cpu.number for cpu in facts.cpus.online)
    wanted = asked(facts, "isolcpus")
    if value and (wanted is None or wanted & online != facts.cpus.isolated & online):
        yield Finding(
            check="isolation_effect",
            severity=Severity.BLOCKER,
            what=f"isolcpus={value} is not in effect: the kernel isolates {named(facts.cpus.isolated)}",
            why="the kernel did not understand the list, or a later parameter replaced it",
            source="/sys/devices/system/cpu/isolated",
            remedy="correct the list; 'dl3 host plan' prints one for this machine",
        )
    elif value and wanted is not None and wanted - online:
        yield Finding(
            check="isolation_effect",
            severity=Severity.SPEED,
            what=f"isolcpus= names {named(wanted - online)}, which is not online",
            why="the list was made for another machine, or Hyper-Threading was switched since",
            source="/sys/devices/system/cpu/online",
            remedy="make a new list with 'dl3 host plan'",
        )
