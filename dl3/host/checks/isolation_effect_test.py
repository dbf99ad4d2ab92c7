"""The parameter beside what the kernel did."""

from dl3.host.checks.isolation_effect import check
from dl3.host.fixture import Machine, found


def compares_the_parameter_with_the_kernel() -> None:
    made = Machine()
    made.isolate("2-3")
    assert found(check, made) == []
    made.texts["/sys/devices/system/cpu/isolated"] = "\n"
    assert found(check, made) == [
        ("blocker", "isolcpus=managed_irq,domain,2-3 is not in effect: the kernel isolates no CPU")
    ]


def names_a_list_for_another_machine() -> None:
    made = Machine(offline=(3,))
    made.isolate("2-3")
    assert found(check, made) == [("speed", "isolcpus= names CPU 3, which is not online")]
