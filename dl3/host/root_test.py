"""Commands run without root."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
READ_ALL = "+dac_read_search"  # the sources may be in a folder that only root can enter
AS_NOBODY = ("setpriv", "--reuid=65534", "--clear-groups", f"--inh-caps={READ_ALL}", f"--ambient-caps={READ_ALL}", "--")
COMMANDS = [
    "bench throughput --lab --record r.jsonl",
    "bench latency --lab --record r.jsonl",
    "bench idle --lab --record r.jsonl",
    "bench proof --lab --record r.jsonl",
    "bench reset --lab --record r.jsonl",
    "bench compare dl3d linux --record r.jsonl",
    "bench peers --output o.json",
    "bench onecore --record r.jsonl -- true",
    "bench run smoke --record r.jsonl",
]


@pytest.mark.parametrize("command", COMMANDS)
def reports_that_it_needs_root_before_anything_is_started(command: str) -> None:
    words = [*AS_NOBODY, sys.executable, "-m", "dl3", *shlex.split(command)]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        done = subprocess.run(
            words, cwd=folder, env=os.environ | {"PYTHONPATH": str(TOP)}, capture_output=True, text=True
        )
        left = list(folder.iterdir())
    assert done.returncode == 2, done.stderr
    assert "needs root: run the command with sudo" in done.stderr
    assert "Traceback" not in done.stderr
    assert not left
