"""Watchdogs of the kernel."""

from dl3.host.checks.watchdogs import check
from dl3.host.fixture import Machine, found


def names_those_that_are_on() -> None:
    made = Machine()
    assert found(check, made) == [("speed", "kernel.nmi_watchdog and kernel.watchdog are on")]
    made.texts["/proc/sys/kernel/watchdog"] = "0\n"
    assert found(check, made) == [("speed", "kernel.nmi_watchdog is on")]
    made.texts["/proc/sys/kernel/nmi_watchdog"] = "0\n"
    assert found(check, made) == []
