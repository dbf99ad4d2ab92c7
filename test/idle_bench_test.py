"""The command that compares polling with sleeping workers, with real programs; the figures are not checked."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness.wired import TOP

from dl3.record.reader import read

SHORT = ("--rounds", "1", "--seconds", "0.2", "--search-seconds", "0.05", "--steps", "1", "--step-seconds", "0.05")
FEW = ("--descriptors", "16384")  # a pause of a shared core fits into such a ring


@pytest.mark.long
@pytest.mark.alone  # two polling programs, and huge pages
def reports_what_idle_workers_cost_and_lose(tmp_path: Path) -> None:
    """Two labs; dl3gen pauses for 2.5 s in each before it is observed, and a search needs the cores only briefly."""
    record = tmp_path / "r.jsonl"
    command = [str(TOP / "bin" / "dl3"), "bench", "idle", "--lab", *SHORT, *FEW, "--json", "--record", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: the cores were so busy that a mode has no rate
    reported: dict[str, Any] = json.loads(done.stdout)
    assert [mode["idle"] for mode in reported["modes"]] == ["poll", "sleep"]
    for mode in reported["modes"]:
        for name in ("dl3d_shares", "asleep_shares", "dl3gen_shares", "pps"):
            assert len(mode[name]) == 1
        assert len(mode["p50_ns"]) + mode["invalid_latencies"] == 1
        assert len(mode["steps_lost"]) + mode["invalid_steps"] == 1
    assert reported["modes"][0]["asleep_shares"] == [0.0]
    kept = read(record)
    assert [one.model_dump(mode="json") for one in kept.idles] == [{k: v for k, v in reported.items() if k != "record"}]
    assert {trial.facts["forwarder"]["idle"] for trial in kept.trials} == {"poll", "sleep"}  # type: ignore[index]
