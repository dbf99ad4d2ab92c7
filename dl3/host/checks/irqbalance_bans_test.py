"""Lists of banned CPUs."""

from dl3.host.checks.irqbalance_bans import check
from dl3.host.fixture import Machine, found


def names_a_list_that_switches_off_the_own_detection() -> None:
    made = Machine()
    made.service("irqbalance")
    made.texts["/etc/default/irqbalance"] = "# IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_ONESHOT=\n"
    assert found(check, made) == []
    made.texts["/etc/default/irqbalance"] = "IRQBALANCE_BANNED_CPULIST=4\n"
    assert found(check, made) == [("loss", "/etc/default/irqbalance has IRQBALANCE_BANNED_CPULIST=4")]
