"""Threads of isolated cores."""

from dl3.host.checks.split_cores import check
from dl3.host.fixture import Machine, found


def names_the_thread_that_shares_the_core_of_a_worker() -> None:
    made = Machine(n_cores=4, n_threads=2)
    made.isolate("2-3,6-7")
    assert found(check, made) == []
    made.isolate("2-3")
    assert found(check, made) == [("loss", "the core of an isolated CPU also has CPUs 6-7, not isolated")]
