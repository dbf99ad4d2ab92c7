"""Cores that stay with Linux."""

from dl3.host.checks.housekeeping import check
from dl3.host.fixture import Machine, found


def cpu_0_and_one_core_of_each_node_stay_with_linux() -> None:
    made = Machine(n_nodes=2, n_cores=2)
    made.isolate("1,3")
    assert found(check, made) == []
    made.isolate("0-1")
    assert found(check, made) == [("loss", "CPU 0 is isolated"), ("loss", "all cores of node 0 are isolated")]
    made.isolate("2-3")
    assert found(check, made) == [("loss", "all cores of node 1 are isolated")]
