"""The time stamp counter is the clock."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity


def check(facts: Facts) -> Iterator[Finding]:
    """The current clock source; virtual machines may have another one that is as good."""
    source = facts.cpus.clocksource
    if source in ("hpet", "acpi_pm", "jiffies"):
        yield Finding(
            check="clocksource",
            severity=Severity.SPEED,
            what=f"the clock source is {source}",
            why="Linux found the time stamp counter unreliable, and reading the clock takes a microsecond instead of 20 ns",
            source="Linux, timekeeping; /sys/devices/system/clocksource",
            remedy="look for 'clocksource' in the kernel's log; a new BIOS often helps",
        )
