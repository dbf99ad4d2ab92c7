"""The bench of shaping with real programs: a wire, dl3d and Linux shape, dl3gen is the witness, the record becomes a page."""

import json
import subprocess
from pathlib import Path

import pytest
from harness.answers import AS_DUE, THERE, Bench, port
from harness.wired import TOP

pytestmark = pytest.mark.alone  # a core for each program, of some devices also huge pages

PATIENCE_S = 600


def _dl3(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOP / "bin" / "dl3", *words], capture_output=True, text=True, timeout=PATIENCE_S)


LIMIT_PPS, FRAME = 100, 1024
STREAM = "- {from: left, to: right, dst_mac: '02:00:00:00:00:77', dst_ip: 198.19.0.1, rate: 1 pps}\n"


def a_wire_that_drops_what_is_above_its_rate_is_witnessed(tmp_path: Path) -> None:
    channel = f"{THERE} limit_pps={LIMIT_PPS} limit_depth=8 {AS_DUE} ring=1024 slot=2048"
    streams, record = tmp_path / "streams.yaml", tmp_path / "record.jsonl"
    streams.write_text(STREAM)
    with Bench(tmp_path, [channel], measures=True, ports=[port(0), port(1)]) as wire:
        device = f"external:generator={wire.dl3gen.socket},streams={streams}"
        words = ("--subscribers", "1", "--rate", f"{LIMIT_PPS * FRAME * 8}bit/s", "--frame", str(FRAME))
        more = ("--seconds", "0.5", "--retries", "0", "--record", record, "--json")
        done = _dl3("bench", "shape", "--device", device, *words, *more)
    _check(done, record, 1, [LIMIT_PPS * FRAME * 8.0])


@pytest.mark.long
@pytest.mark.parametrize("device", ["dl3d", "dl3d:wire=veth", "tc"])
def rates_are_witnessed_or_the_trial_is_invalid(device: str, tmp_path: Path) -> None:
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
    _check(_dl3("bench", "shape", *words, "--record", record, "--json"), record, 10, [400e3, 1e6])


def _check(done: subprocess.CompletedProcess[str], record: Path, number: int, rates: list[float]) -> None:
    """A busy machine makes trials INVALID: then there is a reason and no result, and status 1."""
    assert record.exists(), done.stderr
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
        assert (result["subscribers"], result["silent"], result["rates_bps"]) == (number, 0, rates)
        assert 0 < result["jain"] <= 1
        assert [one["dscp"] for one in result["classes"]] == [46, 0]
        assert all(one["delay"]["n"] > 0 for one in result["classes"])
    assert _dl3("report", record).returncode == 0
    assert ('id="section-shaping"' in record.with_suffix(".html").read_text()) == (not done.returncode)
