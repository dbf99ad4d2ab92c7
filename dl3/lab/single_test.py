"""Cores of programs started by the lab."""

import sys
from pathlib import Path

import pytest

from dl3.host.cores import usable
from dl3.lab.process import end_all
from dl3.lab.single import start_process

WORD = "allowed"
TELL = f"import os, time\nprint('{WORD}', sorted(os.sched_getaffinity(0)), flush=True); time.sleep(60)"


def a_program_may_use_the_cores_that_there_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Core numbers may have gaps, so they are not simply counted from 0."""
    last = usable()[-1]
    monkeypatch.setattr("dl3.lab.single.usable", lambda: (last,))
    one = start_process("it", [sys.executable, "-c", TELL], tmp_path)
    try:
        one.wait_until(lambda: one.log.read_text(encoding="utf-8").endswith("]\n"), "spoken", 60)
        assert one.log.read_text(encoding="utf-8").strip() == f"{WORD} [{last}]"
    finally:
        end_all([one])
