"""The campaign commands: interrupted by SIGKILL and resumed; mistakes give one-sentence errors."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.wired import TOP

PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
TRIES = 4  # on a noisy machine a search may have no result; the same command retries it
CAMPAIGN = """name: small
title: Small
duts: dl3d
defaults:
  frames: [64, 512]
  tests: throughput
  parameters: {descriptors: 16384}
  effort: {seconds: 0.2, method: binary, resolution: 0.1}
cases:
  - {key: a, title: A}
  - {key: b, title: B, needs: SR-IOV}
"""


def _run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOP / "bin" / "dl3", "bench", *words], capture_output=True, text=True, timeout=280)


def _lines(record: Path, kind: str) -> list[dict[str, Any]]:
    """Complete lines of one kind."""
    content = record.read_text().rpartition("\n")[0] if record.exists() else ""
    rows = [json.loads(line) for line in content.splitlines()]
    return [row for row in rows if row["kind"] == kind]


@pytest.fixture
def pages() -> Iterator[None]:
    """A killed process does not return its huge pages."""
    before = PAGES.read_text()
    yield
    PAGES.write_text(before)


def _born(pid: int) -> str:
    """When a process was started; nothing if it has ended. A zombie has, since process 1 may be slow to reap it."""
    try:
        state, *words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state in ("Z", "X") else words[18]


def _children(pid: int) -> dict[int, str]:
    """The processes that a process has started, and when: numbers are used again."""
    return {int(word): _born(int(word)) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def _wait_for_a_trial(record: Path, running: subprocess.Popen[str]) -> None:
    """Until a trial of a job is recorded; a job may consist of a single one."""
    deadline = time.monotonic() + 200
    while not any(trial["job"] for trial in _lines(record, "trial")):
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < deadline, record.read_text()
        time.sleep(0.05)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.usefixtures("pages")
def a_campaign_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    file, record = tmp_path / "small.yaml", tmp_path / "r.jsonl"
    file.write_text(CAMPAIGN)
    command: list[str | Path] = [TOP / "bin" / "dl3", "bench", "run", file, "--record", record]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        _wait_for_a_trial(record, running)
        children = _children(running.pid)
        running.send_signal(signal.SIGKILL)
    assert children
    before = record.read_bytes().rpartition(b"\n")[0]
    for _ in range(TRIES):
        done = _run("run", file, "--record", record)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert record.read_bytes().startswith(before)
    assert not any(born and _born(child) == born for child, born in children.items())
    assert len(_lines(record, "plan")) == len(_lines(record, "proof")) == 1
    jobs = ["a|dl3d||throughput|64", "a|dl3d||throughput|512"]
    assert [one["job"] for one in _lines(record, "finished")] == jobs
    assert {one["job"] for one in _lines(record, "throughput")} == set(jobs)
    assert "continuing with the rest" in done.stderr


def a_plan_reports_what_a_machine_cannot_do_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(CAMPAIGN)
    plan = json.loads(_run("run", file, "--dry-run", "--json").stdout)
    assert [len(case["jobs"]) for case in plan["cases"]] == [2, 0]
    assert "SR-IOV" in plan["cases"][1]["reason"]["en"]
    assert 10 < plan["seconds"] < 120
    done = _run("run", "white-paper", "--budget", "20m", "--dry-run")
    assert "trial length" in done.stdout
    assert "not applicable here" in done.stdout
    assert done.returncode == 0, done.stderr
    found = json.loads(_run("campaigns", "--json").stdout)
    assert {one["name"]: one["cases"] for one in found}["white-paper"] == 19


def every_published_measurement_is_listed_with_what_repeats_it() -> None:
    done = _run("campaigns", "--sources", "--json")
    assert done.returncode == 0, done.stderr
    found = {(one["source"], one["case"]): one for one in json.loads(done.stdout)}
    assert {case for source, case in found if source == "thesis"} == {f"4.{n}" for n in range(3, 9)}
    assert len([case for source, case in found if source == "white-paper"]) == 18  # 2.5 prints the figures of 2.6
    assert found["white-paper", "1.1"]["repeated_by"] == ["white-paper 1.1"]
    assert found["white-paper", "1.1"]["not_here"] == ""
    assert found["white-paper", "2.6"]["repeated_by"] == ["white-paper 2.5", "white-paper 2.6"]
    assert "SR-IOV" in found["white-paper", "2.6"]["not_here"]
    assert found["vrouter", "6.1"]["repeated_by"] == ["contrail 6.1", "lab contrail"]
    assert found["notes", "kernel L2"]["repeated_by"] == ["kernel-notes L2", "lab kernel-notes"]
    assert found["notes", "kernel VXLAN encapsulation"]["repeated_by"] == ["kernel-notes VXLAN"]
    assert [one["repeated_by"] for (source, _), one in found.items() if source == "kvm-report"] == [["lab kvm-report"]]
    assert all(one["repeated_by"] or one["not_here"] == "no campaign repeats it" for one in found.values())
    assert {case for one in found.values() for case in one["repeated_by"]} >= {f"white-paper {n}.1" for n in (1, 2, 3)}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("run", "small.yaml"), "small.yaml, line 6: the key 'test' is unknown: expected one of frames, tests, "),
        (
            ("run", "nothing"),
            "unknown campaign 'nothing': specify a YAML file or a built-in campaign: contrail, kernel-notes, peers, smoke, ",
        ),
        (("run", "smoke", "--budget", "soon"), "--budget 'soon': expected a time like '90s', '20m' or '1h30m'"),
        (("run", "smoke", "--budget", ""), "--budget '': expected a time like '90s', '20m' or '1h30m'"),
        (("run", "white-paper", "--budget", "30s"), "the time budget of 30s is too short for "),
        (("run", "smoke", "--record", "small.yaml/r"), "cannot be written: "),
        (("run", "smoke", "--record", "other.jsonl"), "other.jsonl is the record of something else"),
        (
            ("run", "smoke", "--record", "small.yaml"),
            "small.yaml is not a record: choose another file, or omit --record",
        ),
    ],
)
def a_mistake_is_one_sentence_and_starts_nothing(
    words: tuple[str, ...], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(CAMPAIGN.replace("tests:", "test:"))
    Path("other.jsonl").write_text(json.dumps(OTHER) + "\n")
    done = _run(*words)
    assert done.returncode in (1, 2)
    assert wanted in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert Path("small.yaml").read_text() == CAMPAIGN.replace("tests:", "test:")


OTHER = {
    "kind": "throughput",
    "at": "t",
    "campaign": "c",
    "dut": "d",
    "frame": "64",
    "mean_bytes": 64,
    "pps": 1,
    "upper_pps": 2,
    "limited_by": "dut",
    "goal_loss_ratio": 0,
    "resolution": 0.01,
    "trial_seconds": 1,
    "repetitions": 1,
    "n_trials": 1,
    "n_invalid": 0,
    "line_bps": 0,
    "facts": {},
}
