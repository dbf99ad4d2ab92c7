"""Two campaigns compared by the command: its output and its exit status."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from harness.records import Maker

from dl3.report.results import Record

TOP = Path(__file__).resolve().parent.parent


def _record(folder: Path, name: str, records: Sequence[Record]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in records), encoding="utf-8")
    return path


def _report(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dl3", "report", *(str(one) for one in arguments)]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=120)


def _one(folder: Path, name: str, pps: float, **changes: object) -> Path:
    return _record(folder, name, [Maker().result("64", pps, **changes)])


@pytest.mark.parametrize(
    ("before", "after", "code", "verdict"),
    [
        ({"pps": 10e6}, {"pps": 10.2e6}, 0, "unchanged"),
        ({"pps": 10e6}, {"pps": 12e6}, 0, "better"),
        ({"pps": 10e6}, {"pps": 9e6}, 1, "worse"),
        ({"pps": 10e6, "interval_pps": (8e6, 11e6)}, {"pps": 9e6}, 0, "unchanged"),
        ({"pps": 10e6, "repeats_pps": (9.9e6, 10.1e6)}, {"pps": 9.8e6, "repeats_pps": (9.7e6, 9.8e6)}, 1, "worse"),
        ({"pps": 10e6}, {"pps": 9e6, "limited_by": "generator"}, 0, "unclear"),
    ],
)
def leaves_with_a_code_that_reports_whether_anything_became_worse(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], code: int, verdict: str
) -> None:
    done = _report(_one(tmp_path, "before", **before), _one(tmp_path, "after", **after))
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[3].split()[-1] == verdict
    assert 'id="comparison"' in (tmp_path / "after.html").read_text(encoding="utf-8")


def counts_a_result_that_is_missing_as_worse(tmp_path: Path) -> None:
    both = [Maker().result("64", 10e6), Maker().result("512", 9e6)]
    done = _report(_record(tmp_path, "before", both), _record(tmp_path, "after", both[:1]))
    assert done.returncode == 1
    assert "worse: 0, missing: 1, better: 0, unchanged: 1." in done.stdout


def does_not_leave_as_if_something_became_worse_when_it_could_not_compare(tmp_path: Path) -> None:
    records = [_one(tmp_path, name, 10e6) for name in ("before", "after")]
    (nowhere := tmp_path / "folder").mkdir()
    done = _report(*records, "--output", nowhere)
    assert (done.returncode, "cannot be written" in done.stderr) == (2, True)
    for option in ("--csv", "--json"):
        command = [sys.executable, "-m", "dl3", "report", *map(str, records), option]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, cwd=TOP, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 2
        assert done.stderr.startswith("dl3: output is incomplete: No space left on device")


def refuses_to_compare_what_has_nothing_in_common(tmp_path: Path) -> None:
    other = _record(tmp_path, "other", [Maker(dut="l3fwd").result("64", 10e6)])
    done = _report(_one(tmp_path, "before", 10e6), other)
    assert done.returncode == 2
    assert "have no question in common" in done.stderr
    assert _report(_one(tmp_path, "before", 10e6), other, "--together").returncode == 0


def names_the_record_that_has_no_results_to_compare(tmp_path: Path) -> None:
    empty, trials = _record(tmp_path, "empty", []), _record(tmp_path, "trials", [Maker().trial("64", 1e6)])
    before = _one(tmp_path, "before", 10e6)
    for records, named in (((before, empty), empty), ((trials, before), trials)):
        done = _report(*records)
        assert done.returncode == 2
        assert f"{named} has no results" in done.stderr.replace("\n", " ")
    assert "have no results" in _report(trials, empty).stderr


def names_the_wire_of_figures_that_only_differ_by_it(tmp_path: Path) -> None:
    found = [
        Maker(facts=(("lab", {"wire": wire}),)).result("64", pps) for wire, pps in (("memif", 16e6), ("veth", 6e5))
    ]
    record = _record(tmp_path, "both", found)
    rows = csv.DictReader(io.StringIO(_report(record, "--csv").stdout))
    assert [(row["wire"], float(row["value"])) for row in rows] == [("memif", 16e6), ("veth", 6e5)]
    results = json.loads(_report(record, "--json").stdout)["throughput"]
    assert [(one["wire"], one["pps"]) for one in results] == [("memif", 16e6), ("veth", 6e5)]
    done = _report(record, record)
    assert "unchanged: 2, unclear: 0, new: 0." in done.stdout
    assert "dl3d wire veth" in done.stdout


def writes_no_page_beside_figures_for_programs_unless_it_is_named(tmp_path: Path) -> None:
    record = _one(tmp_path, "before", 10e6)
    kept, named = tmp_path / "before.html", tmp_path / "named.html"
    kept.write_text("somebody's own", encoding="utf-8")
    for option in ("--csv", "--json"):
        assert _report(record, option).returncode == 0
        assert kept.read_text(encoding="utf-8") == "somebody's own"
        assert _report(record, option, "--output", named).returncode == 0
        named.unlink()
    assert json.loads(_report(record, "--json").stdout)["page"] is None
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["before.html", "before.jsonl"]


def prints_figures_for_programs(tmp_path: Path) -> None:
    record = _one(tmp_path, "before", 10e6, interval_pps=(9.9e6, 10.1e6))
    rows = list(csv.DictReader(io.StringIO(_report(record, "--csv").stdout)))
    assert [(row["name"], float(row["value"]), float(row["low"]), row["basis"], row["lines"]) for row in rows] == [
        ("throughput", 10e6, 9.9e6, "interval", "1")
    ]
    found = json.loads(_report(record, _one(tmp_path, "after", 9e6), "--json").stdout)
    assert found["comparison"]["is_worse"]
    assert found["comparison"]["changes"][0]["ratio"] == pytest.approx(0.9)
    assert found["figures"][0]["value"] == 9e6
