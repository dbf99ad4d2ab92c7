"""Frequency governors."""

from dl3.host.checks.frequency import check
from dl3.host.fixture import Machine, found


def names_cpus_that_follow_the_load() -> None:
    made = Machine()
    assert found(check, made) == []
    made.texts["/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor"] = "powersave\n"
    assert found(check, made) == [("speed", "the frequency governor of CPU 2 is powersave")]
    assert found(check, Machine(governor=None)) == [], "as in a virtual machine"
