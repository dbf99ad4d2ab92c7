"""The bench command on a wire with known properties: output, record and report match what the wire did."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.answers import AS_DUE, THERE, Bench, port
from harness.wired import TOP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

pytestmark = pytest.mark.alone  # one core for the wire, whose timing is measured

MAC = "02:00:00:00:00:77"
LIMIT_PPS, DELAY_NS = 100_000, 20_000
ATTEMPTS = 5  # the core may be taken away so often that a search ends as limited by the generator


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    channel = f"{THERE} limit_pps={LIMIT_PPS} limit_depth=8 {AS_DUE} delay_ns={DELAY_NS} ring=16384 slot=256"
    ports = [port(0, line_rate="200 Mbit/s"), port(1)]
    with Bench(tmp_path_factory.mktemp("wire"), [channel], measures=True, ports=ports) as made:
        yield made


def _dl3(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOP / "bin" / "dl3", *words], capture_output=True, text=True, timeout=120)


def _bench(wire: Bench, record: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    site = ("--generator", wire.dl3gen.socket, "--dut", "none", "--dut-name", "wire", "--record", record)
    return _dl3("bench", *words, *site, "--sizes", "64")


def _records(path: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if row.get("kind") == kind]


@pytest.fixture(scope="module")
def record(wire: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a search that was ended by the device rather than by a busy machine."""
    folder = tmp_path_factory.mktemp("records")
    for number in range(ATTEMPTS):
        path = folder / f"{number}.jsonl"
        done = _bench(wire, path, "throughput", "--seconds", "0.1", "--resolution", "0.002", "--retries", "20")
        if done.returncode == 0 and _records(path, "throughput")[0]["limited_by"] == "dut":
            return path
    raise AssertionError(done.stderr)


@pytest.mark.timing
def the_command_finds_what_the_wire_can(record: Path) -> None:
    (result,) = _records(record, "throughput")
    assert (result["limited_by"], result["dut"], result["frame"]) == ("dut", "wire", "64")
    assert result["pps"] == pytest.approx(LIMIT_PPS, rel=0.005)
    assert result["line_bps"] == 2e8
    for trial in [trial for trial in _records(record, "trial") if not trial["invalid"]]:
        account = trial["account"]
        assert account["sent"] == account["received"] + account["lost"]
        assert sum(account["lost_by_place"].values()) == account["lost"]
        assert account["lost"] > 0 or trial["offered_pps"] < LIMIT_PPS * 1.005
        assert account["lost"] == 0 or trial["offered_pps"] > LIMIT_PPS * 0.995


@pytest.mark.timing
def the_command_measures_the_delay_of_the_wire(wire: Bench, record: Path) -> None:
    done = _bench(wire, record, "latency", "--from", record, "--loads", "50", "--seconds", "0.1")
    trials = [trial for trial in _records(record, "trial") if trial["test"] == "latency"]
    assert trials, done.stderr
    for trial in [trial for trial in trials if not trial["invalid"]]:
        assert trial["load"] == 0.5
        assert trial["latency_from_sending"]["min"] >= DELAY_NS * 0.995
        assert trial["latency_from_sending"]["p50"] < 2 * DELAY_NS


@pytest.mark.long
def the_command_measures_with_the_frames_of_a_capture(wire: Bench, tmp_path: Path) -> None:
    frames = [Ether(src=MAC, dst=MAC) / IP(dst="198.19.0.1") / UDP() / Raw(bytes(n)) for n in (18, 118)]
    wrpcap(str(tmp_path / "in.pcap"), frames)
    streams = tmp_path / "streams.yaml"
    streams.write_text(f"- {{from: left, to: right, pcap: {tmp_path / 'in.pcap'}, stamp: true, loops: 3, rate: x2}}\n")
    words = ("--generator", wire.dl3gen.socket, "--dut", "none", "--streams", streams, "--seconds", "0.1")
    for number in range(ATTEMPTS):
        path = tmp_path / f"{number}.jsonl"
        done = _dl3("bench", "throughput", *words, "--record", path, "--retries", "20", "--resolution", "0.02")
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    (result,) = _records(path, "throughput")
    assert (result["frame"], result["mean_bytes"]) == ("capture", pytest.approx(114, rel=1e-3))
    assert result["limited_by"] != "dut" or result["pps"] == pytest.approx(LIMIT_PPS, rel=0.03)
    refused = _dl3("bench", "throughput", *words, "--sizes", "64")
    assert refused.returncode == 2
    assert "frames of '64' were requested, but captured frames have their own sizes" in refused.stderr


def the_record_becomes_a_page(record: Path) -> None:
    done = _dl3("report", record)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wire" in record.with_suffix(".html").read_text()
