"""Interrupts on isolated cores."""

from dl3.host.checks.irq_affinity import check
from dl3.host.fixture import Machine, found


def looks_at_the_effective_affinity() -> None:
    made = Machine()
    made.irq(30, "nvme0q1", "1")
    made.isolate("2-3")
    assert found(check, made) == []
    made.irq(31, "eth0-rx-0", "2")
    made.irq(32, "nvme0q3", "3")
    assert found(check, made) == [
        ("loss", "interrupts 31 (eth0-rx-0), 32 (nvme0q3) are handled on isolated CPUs 2-3"),
    ]


def names_a_few_of_many() -> None:
    made = Machine()
    made.isolate("2-3")
    for n in range(40, 50):
        made.irq(n, f"q{n}", "3")
    assert found(check, made)[0][1].endswith("43 (q43) and 6 more are handled on isolated CPU 3")


def the_queue_of_a_device_that_only_an_isolated_core_would_use_is_silent() -> None:
    made = Machine()
    made.isolate("2-3")
    for number, count in ((50, 0), (51, 1)):
        made.irq(number, f"virtio0-req.{number}", "3")
        made.texts[f"/proc/irq/{number}/smp_affinity_list"] = "3\n"
        made.texts[f"/sys/kernel/irq/{number}/per_cpu_count"] = f"0,7,0,{count}\n"
    assert found(check, made)[0][1] == "interrupts 51 (virtio0-req.51) are handled on isolated CPU 3"
