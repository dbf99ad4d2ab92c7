"""Autogroup scheduling is off while a lab runs and restored after the last one."""

import subprocess
import sys
from pathlib import Path

import pytest

from dl3.host import sessions
from dl3.host.sessions import weighed_alone

TOP = Path(__file__).resolve().parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from dl3.host import sessions
sessions._folder = lambda: Path(sys.argv[2])
with sessions.weighed_alone(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the kernel's file, switched on."""
    monkeypatch.setattr(sessions, "_folder", lambda: tmp_path / "notes")
    made = tmp_path / "switch"
    made.write_text("1\n")
    return made


def sessions_are_put_back_by_the_last_of_several_labs(switch: Path) -> None:
    first, second = weighed_alone(switch), weighed_alone(switch)
    with first:
        assert switch.read_text() == "0\n"
        second.__enter__()
    assert switch.read_text() == "0\n"
    second.__exit__(None, None, None)
    assert switch.read_text() == "1\n"


def sessions_that_were_off_stay_off(switch: Path) -> None:
    switch.write_text("0\n")
    with weighed_alone(switch):
        assert switch.read_text() == "0\n"
    assert switch.read_text() == "0\n"


def what_a_killed_lab_left_is_put_back_by_the_next(switch: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(switch), str(switch.with_name("notes"))]
    assert subprocess.run(command, cwd=TOP, check=False).returncode < 0
    assert switch.read_text() == "0\n"
    with weighed_alone(switch):
        assert switch.read_text() == "0\n"
    assert switch.read_text() == "1\n"


def a_kernel_without_groups_of_sessions_runs_labs_too(tmp_path: Path) -> None:
    with weighed_alone(tmp_path / "none"):
        assert not (tmp_path / "none").exists()
