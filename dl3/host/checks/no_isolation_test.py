"""Machines without isolated cores."""

from dl3.host.checks.no_isolation import check
from dl3.host.fixture import Machine, found


def names_a_machine_without_isolated_cores() -> None:
    made = Machine()
    assert found(check, made) == [("loss", "no CPU is isolated")]
    made.isolate("2-3")
    assert found(check, made) == []


def two_threads_of_one_core_are_one_core() -> None:
    assert found(check, Machine(n_cores=1, n_threads=2)) == [("loss", "this machine has one core")]
