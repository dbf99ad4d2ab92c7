"""Kernels that cannot stop the timer tick on cores of workers."""

from collections.abc import Iterator

from dl3.host.facts.read import Facts
from dl3.host.finding import Finding, Severity
from dl3.host.isolation import asked, named

SOURCE = "Linux, timers/no_hz; vyos-build#1045"


def check(facts: Facts) -> Iterator[Finding]:
    """What nohz_full= asks for, and what the kernel does."""
    wanted, lacks = asked(facts, "nohz_full"), facts.kernel.lacks("CONFIG_NO_HZ_FULL")
    if facts.kernel.value("nohz_full") and wanted != facts.cpus.nohz_full:
        why = "this kernel was built without CONFIG_NO_HZ_FULL" if lacks else "the kernel did not accept the list"
        yield Finding(
            check="no_nohz_full",
            severity=Severity.BLOCKER,
            what=f"nohz_full={facts.kernel.value('nohz_full')} has no effect: the kernel stops the tick on "
            f"{named(facts.cpus.nohz_full)}",
            why=f"{why}; each timer tick interrupts a worker",
            source=SOURCE,
            remedy="boot a kernel with CONFIG_NO_HZ_FULL=y, as those of Debian, Ubuntu and RHEL are, or remove the parameter",
        )
    elif lacks:
        yield Finding(
            check="no_nohz_full",
            severity=Severity.SPEED,
            what="this kernel was built without CONFIG_NO_HZ_FULL",
            why="the timer tick interrupts each worker 100 to 1,000 times per second, for some microseconds",
            source=SOURCE,
            remedy="boot a kernel with CONFIG_NO_HZ_FULL=y; without it, 'dl3 host plan' leaves out nohz_full=",
        )
