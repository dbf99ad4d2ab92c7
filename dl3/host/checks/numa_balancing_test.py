"""NUMA balancing."""

from dl3.host.checks.numa_balancing import check
from dl3.host.fixture import Machine, found


def names_it_if_it_is_on() -> None:
    made = Machine(n_nodes=2)
    assert found(check, made) == []
    made.texts["/proc/sys/kernel/numa_balancing"] = "1\n"
    assert found(check, made) == [("loss", "automatic NUMA balancing is on")]
    del made.texts["/proc/sys/kernel/numa_balancing"]
    assert found(check, made) == []
