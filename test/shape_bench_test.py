"""The bench of shaping with real programs: dl3d and Linux shape, dl3gen is the witness, the record becomes a page."""

import json
import subprocess
from pathlib import Path

import pytest
from harness.wired import TOP

pytestmark = [pytest.mark.alone, pytest.mark.long]  # two cores, huge pages, and some seconds for each device

PATIENCE_S = 600


def _dl3(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOP / "bin" / "dl3", *words], capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.parametrize("device", ["dl3d", "dl3d:wire=veth", "tc"])
def rates_are_witnessed_or_the_trial_is_invalid(device: str, tmp_path: Path) -> None:
    """A busy machine makes trials INVALID: then there is a reason and no result, and status 1."""
    record = tmp_path / "record.jsonl"
    words = (
        "--device",
        device,
        "--subscribers",
        "10",
        "--rate",
        "400kbit/s,1Mbit/s",
        "--seconds",
        "2",
        "--retries",
        "1",
    )
    done = _dl3("bench", "shape", *words, "--record", record, "--json")
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    trials, results = ([one for one in lines if one["kind"] == kind] for kind in ("trial", "shaping"))
    assert trials, done.stderr
    assert all(trial["test"] == "shaping" and trial["account"]["received"] > 0 for trial in trials)
    assert json.loads(done.stdout)["results"] == results
    if done.returncode:
        assert (done.returncode, results) == (1, []), done.stderr
        assert all(trial["invalid"] for trial in trials)
        assert "1 of 1 numbers of subscribers have no result, because their trials were INVALID" in done.stderr
    else:
        (result,) = results
        assert not trials[-1]["invalid"]
        assert (result["subscribers"], result["silent"], result["rates_bps"]) == (10, 0, [400e3, 1e6])
        assert result["queue"] in ("fq_codel", "bfifo")
        assert 0 < result["jain"] <= 1
        assert [one["dscp"] for one in result["classes"]] == [46, 0]
        assert all(one["delay"]["n"] > 0 for one in result["classes"])
    page = record.with_suffix(".html")
    assert _dl3("report", record).returncode == 0
    assert ('id="section-shaping"' in page.read_text()) == (not done.returncode)
