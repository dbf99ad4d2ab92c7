"""The worker without devices of the rows of VLANs, hand-over and labels: it forwards all frames, by the steps that a row
is about.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from harness.wire import wait_until
from harness.wired import BUILD

from dl3.bench.contest import ROWS, WORKER

PROGRAM = BUILD / "src" / "datapath" / "worker_bench"
MANY = 10_000
TASKS = sorted({side.mode for row in ROWS for side in (row.ours, row.peer) if side.program == WORKER})
STEPS = {
    "handover": {"handover"},
    "ipv4": {"lookup", "rewrite"},
    "mpls-udp-decap": {"unlabel", "decap", "lookup", "rewrite"},
    "mpls-udp-encap": {"lookup", "encap"},
    "vlans-1-vrf": {"lookup", "untag"},
}


def _sent(path: Path) -> int:
    words = path.read_text(encoding="ascii").split() if path.exists() else []
    return int(words[4]) if len(words) == 5 else 0


@pytest.mark.parametrize("task", TASKS)
def a_worker_forwards_all_frames_by_the_steps_of_its_row(task: str, tmp_path: Path) -> None:
    stats = tmp_path / "stats"
    words, around = [str(PROGRAM), task], os.environ | {"ONECORE_STATS": str(stats)}
    with subprocess.Popen(words, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        try:
            wait_until(lambda: _sent(stats) > MANY or worker.poll() is not None, "it had sent frames")
        finally:
            worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=60)
    assert (worker.returncode, err) == (0, "")
    assert {line.split()[0] for line in out.splitlines()} >= STEPS.get(task, {"parse"})


def an_unknown_task_gets_one_sentence() -> None:
    done = subprocess.run([str(PROGRAM), "3"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("worker_bench: expected a task: vlans-1-vrf, ")
