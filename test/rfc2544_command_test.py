"""All six tests of RFC 2544 by one command, on a known wire that a command of the test can cut."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.answers import THERE, Bench, port, stream
from harness.wired import TOP

LIMIT_PPS, DEAD_MS = 80_000, 100
ATTEMPTS = 4  # another process on the core may spoil one
TITLES = ("throughput", "latency", "frame loss rate", "back-to-back frames", "system recovery", "reset")
CUT = """
import sys
from pathlib import Path
path, name, row = Path(sys.argv[1]), b"die_ns", {ms} * 1_000_000
at = path.read_bytes().index(name)
with path.open("r+b") as file:
    file.seek(at + 24)
    file.write(row.to_bytes(8, "little"))
"""


def _rfc2544(bench: Bench, folder: Path, record: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "cut.py"
    script.write_text(CUT.format(ms=DEAD_MS))
    site = ("--generator", bench.dl3gen.socket, "--dut", "none", "--dut-name", "wire", "--record", record)
    cut = ("--process-command", f"{sys.executable} {script} {folder / 'account'}")
    words = ("bench", "rfc2544", *site, "--sizes", "64", "--seconds", "0.3", "--resolution", "0.02", *cut)
    return subprocess.run([TOP / "bin" / "dl3", *words], capture_output=True, text=True, timeout=300)


def _entries(record: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    return {row["kind"]: row for row in rows}


@pytest.mark.timing
@pytest.mark.long
def the_command_makes_all_six_tests_and_one_record(tmp_path: Path) -> None:
    ports = [port(0, line_rate="100 Mbit/s"), port(1)]
    channel = f"{THERE} limit_pps={LIMIT_PPS} limit_depth=600 queues=1 ring=65536 slot=128"
    with Bench(tmp_path, [channel], measures=True, ports=ports, streams=[stream(catch_up=512)]) as bench:
        for number in range(ATTEMPTS):
            record = tmp_path / f"{number}.jsonl"
            done = _rfc2544(bench, tmp_path, record)
            if done.returncode == 0:
                break
    assert done.returncode == 0, done.stderr
    assert all(title in done.stdout for title in TITLES), done.stdout
    assert "deviation: The longest burst is searched once instead of 50" in done.stdout
    found = _entries(record)
    assert found["throughput"]["pps"] == pytest.approx(LIMIT_PPS, rel=0.05)
    assert found["frame_loss"]["points"][0]["loss_ratio"] == pytest.approx(1 - LIMIT_PPS / 148_810, abs=0.02)
    assert found["recovery"]["seconds"][0] < 0.05
    assert found["reset"]["seconds"][0] == pytest.approx(DEAD_MS / 1000, abs=0.02)
    page = subprocess.run([TOP / "bin" / "dl3", "report", record], capture_output=True, text=True, timeout=120)
    assert (page.returncode, page.stderr) == (0, "")
