"""Simulated threads in a folder like /proc."""

from pathlib import Path

import pytest

from dl3.host.threads import ran_s
from dl3.model.fault import Fault


def _thread(proc: Path, number: int, cores: str, ran_ns: int) -> None:
    folder = proc / "7" / "task" / str(number)
    folder.mkdir(parents=True)
    (folder / "status").write_text(f"Name:\tdl3d\nCpus_allowed:\t3\nCpus_allowed_list:\t{cores}\n")
    (folder / "schedstat").write_text(f"{ran_ns} 5 9\n")


def counts_the_threads_that_keep_to_the_core_alone(tmp_path: Path) -> None:
    _thread(tmp_path, 7, "0", 9_000_000_000)
    _thread(tmp_path, 8, "1", 1_500_000_000)
    _thread(tmp_path, 9, "0-1", 9_000_000_000)
    assert ran_s(7, 1, tmp_path) == 1.5


def reports_that_no_thread_keeps_to_the_core(tmp_path: Path) -> None:
    _thread(tmp_path, 7, "0-1", 9)
    with pytest.raises(Fault, match="process 7 has no thread pinned to core 1"):
        ran_s(7, 1, tmp_path)
