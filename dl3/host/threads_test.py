"""Simulated threads in a folder like /proc."""

from pathlib import Path

import pytest

from dl3.host.threads import CpuTime, cpu_time
from dl3.model.fault import Fault


def _thread(proc: Path, number: int, cores: str, ran_ns: int) -> None:
    folder = proc / "7" / "task" / str(number)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tdl3d\nCpus_allowed:\t3\nCpus_allowed_list:\t{cores}\n")
    (folder / "schedstat").write_text(f"{ran_ns} {ran_ns // 3} 9\n")


def counts_the_threads_that_keep_to_the_core_alone(tmp_path: Path) -> None:
    _thread(tmp_path, 7, "0", 9_000_000_000)
    _thread(tmp_path, 8, "1", 1_500_000_000)
    _thread(tmp_path, 9, "0-1", 9_000_000_000)
    assert cpu_time(7, 1, tmp_path) == CpuTime(1.5, 0.5)


def reports_that_no_thread_keeps_to_the_core(tmp_path: Path) -> None:
    _thread(tmp_path, 7, "0-1", 9)
    with pytest.raises(Fault, match="process 7 has no thread pinned to core 1"):
        cpu_time(7, 1, tmp_path)


def time_asleep_is_not_taken_by_others() -> None:
    before = CpuTime(ran_s=5.0, waited_s=1.0)
    assert CpuTime(ran_s=5.9, waited_s=1.1).share_since(before) == pytest.approx(0.9)
    assert before.share_since(before) == 1.0  # asleep all the time
