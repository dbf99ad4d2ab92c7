"""Core usage from two snapshots of /proc."""

import os
import subprocess
import sys

from dl3.host.busy import TICKS_PER_S, Busy, Seen, busiest, look, processes, sentence

OWN = 100


def _seen(**ticks: int) -> dict[int, Seen]:
    parents = {"child": OWN, "grandchild": 101}
    pids = {"own": OWN, "child": 101, "grandchild": 102, "dl3gen": 103, "stress": 104, "cron": 105, "late": 106}
    return {pids[name]: Seen(name, parents.get(name, 1), n) for name, n in ticks.items()}


def names_other_programs_most_first_and_none_of_ours() -> None:
    before = _seen(own=0, child=0, grandchild=0, dl3gen=0, stress=5, cron=0)
    after = _seen(
        own=500, child=500, grandchild=500, dl3gen=500, stress=5 + TICKS_PER_S, cron=TICKS_PER_S // 2, late=999
    )
    assert busiest(before, after, 1.0, OWN) == [Busy("stress", 104, 1.0), Busy("cron", 105, 0.5)]


def names_the_program_or_reports_that_none_was_found() -> None:
    many = [Busy("a b", n, 0.5) for n in range(5)]
    assert sentence(many[:1]) == "other programs use the cores: a b (pid 0, 50% of a core)"
    assert sentence(many).endswith(" and 2 more")
    assert "virtual machine" in sentence([])


def finds_a_real_one_that_is_not_ours() -> None:
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert spinner.pid in processes()
        assert spinner.pid not in {one.pid for one in look(0.2)}  # a child of this process
        before = processes()
        while not (found := busiest(before, processes(), 0.01, own=-1)) or spinner.pid not in {
            one.pid for one in found
        }:
            assert os.getpid() in before
    finally:
        spinner.kill()
        spinner.wait()
