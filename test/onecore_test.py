"""The command 'dl3 bench onecore' with a real dl3d: the plugin generates what it receives."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness.wired import DL3D, TOP


@pytest.mark.timing
@pytest.mark.parametrize("ring", ["", "16384"])
def measures_dl3d_with_frames_that_are_there_or_arrive(ring: str, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    options = ["--samples", "2", "--seconds", "0.3", "--json", "--record", str(record)]
    options += ["--ring", ring] if ring else []
    command = [str(TOP / "bin" / "dl3"), "bench", "onecore", *options, "--", str(DL3D), "{config}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    reported: list[dict[str, Any]] = json.loads(done.stdout)["samples"]
    kept = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(reported) == len(kept) == 2
    for said, row in zip(reported, kept, strict=True):
        assert row["environment"]["ONECORE_RING"] == ring
        assert said["sent_pps"] == row["sent_pps"] > 1e5  # what arrives begins with a million
        assert abs(said["received_pps"] - said["sent_pps"]) < 0.01 * said["sent_pps"]
