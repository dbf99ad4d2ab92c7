"""The command that runs campaigns, without starting anything."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.campaign.fake import VOCABULARY
from dl3.campaign.machine import Machine
from dl3.campaign.plan import jobs_of, planned
from dl3.campaign.reader import parsed
from dl3.cli import campaign
from dl3.cli.at import campaign_there
from dl3.cli.campaign import budget_of
from dl3.cli.campaign_file import read_campaign
from dl3.cli.main import app
from dl3.model.campaign import Finished, Plan, Text
from dl3.model.fault import Fault, UsageFault
from dl3.record.journal import append
from dl3.record.reader import read

FILE = """name: mine
title: Mine
duts: dl3d
cases:
  - {key: a, title: A, frames: [64, 512], tests: throughput}
  - {key: b, title: B, frames: 64, tests: latency}
"""


def _plan() -> Plan:
    return planned(parsed(Path("c.yaml"), FILE.encode(), VOCABULARY), Machine(n_cores=2, available_mib=9999), "now")


def _record(path: Path, n_done: int, plan: Plan | None = None) -> bytes:
    """A record with this many jobs, and half a line."""
    plan = plan or _plan()
    append(path, plan)
    for job in jobs_of(plan)[:n_done]:
        append(path, Finished(at="now", campaign="now", job=job.key, seconds=1, planned_seconds=1))
    path.write_bytes(content := path.read_bytes() + b'{"kind":"tr')
    return content


def shows_what_a_record_does_not_have_yet_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE)
    content = _record(record, 2)
    done = CliRunner().invoke(app, ["bench", "run", str(file), "--dry-run", "--json", "--record", str(record)])
    assert done.exit_code == 0, done.output
    assert f"{record} has 2 of 3 jobs" in " ".join(done.stderr.split())
    plan = json.loads(done.stdout)
    assert [job["key"] for case in plan["cases"] for job in case["jobs"]] == ["b|dl3d||latency|64"]
    assert plan["seconds"] < _plan().seconds
    assert record.read_bytes() == content


@pytest.mark.parametrize(
    ("begun", "now", "sentence"),
    [
        ("ssh://a", "ssh://b", "'box' on ssh://a, now it is on ssh://b: use the same --at, or choose"),
        ("ssh://a", "", "'box' on ssh://a, now it is without 'at': "),
        ("", "ssh://b", "'box' without 'at', now it is on ssh://b: "),
        ("ssh://a", "ssh://a", ""),
    ],
)
@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def goes_on_with_a_device_on_the_same_machine_alone(
    begun: str, now: str, sentence: str, dry: tuple[str, ...], tmp_path: Path
) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE.replace("dl3d", "{name: box, kind: external}"))
    made = planned(campaign_there(read_campaign(str(file)), begun), Machine(n_cores=2, available_mib=9999), "now")
    content = _record(record, 3, made)
    words = ["bench", "run", str(file), *dry, "--record", str(record), *(["--at", now] if now else [])]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code == 0) == (not sentence), done.output
    assert sentence in str(done.exception)
    assert record.read_bytes() == content or not dry


@pytest.mark.parametrize(("words", "budget_s"), [((), 120), (("--budget", "5m"), 300)])
def fits_a_campaign_into_the_time_of_its_file_or_of_the_command(words: tuple[str, ...], budget_s: int) -> None:
    done = CliRunner().invoke(app, ["bench", "run", "smoke", "--dry-run", "--json", *words])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert (plan["budget_seconds"], plan["shortened"]) == (budget_s, [])


@pytest.mark.parametrize("has_folder", [True, False])
def creates_nothing_if_the_budget_is_too_short(
    has_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "records" / "r.jsonl"
    if has_folder:
        record.parent.mkdir()
    monkeypatch.setattr(campaign, "new_record", lambda *_: record)
    monkeypatch.setattr(campaign, "need_root", lambda _: None)
    words = ("--record", str(record)) if has_folder else ()
    done = CliRunner().invoke(app, ["bench", "run", "white-paper", "--budget", "1s", *words])
    assert isinstance(done.exception, UsageFault)
    assert "too short" in str(done.exception)
    assert [*tmp_path.iterdir()] == ([record.parent] if has_folder else [])
    assert not has_folder or not [*record.parent.iterdir()]


def reports_that_nothing_is_left_of_a_campaign(tmp_path: Path) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE)
    _record(record, 3)
    done = CliRunner().invoke(app, ["bench", "run", str(file), "--dry-run", "--record", str(record)])
    assert f"{record} has 3 of 3 jobs: nothing left to do" in " ".join(done.stderr.split())


@pytest.mark.parametrize("n_done", [2, 1])
def reports_that_there_is_time_for_what_an_earlier_budget_left_out(n_done: int, tmp_path: Path) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE)
    first, second = _plan().cases
    without = (first, second.model_copy(update={"jobs": ()}))
    _record(record, n_done, _plan().model_copy(update={"cases": without, "shortened": (Text(en="b", zh="b"),)}))
    words = ["bench", "run", str(file), "--dry-run", "--json", "--budget", "10h", "--record", str(record)]
    done = CliRunner().invoke(app, words)
    others = "" if n_done == 2 else "continuing with the rest; "
    reported = f"{record} has {n_done} of 2 jobs: {others}there is time for 1 job that an earlier budget excluded"
    assert reported in " ".join(done.stderr.split())
    made = [job["key"] for case in json.loads(done.stdout)["cases"] for job in case["jobs"]]
    assert (len(made), made[-1]) == (3 - n_done, "b|dl3d||latency|64")


def reports_what_is_not_applicable_before_it_measures_and_when_that_is_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE.replace("duts: dl3d", "duts: {name: peer, kind: grout}"))
    monkeypatch.setenv("PATH", "/nowhere")
    done = CliRunner().invoke(app, ["bench", "run", str(file), "--record", str(record)])
    assert isinstance(done.exception, Fault)
    assert str(done.exception) == "no part of mine can be measured here, see above"
    reported = " ".join(done.stderr.split())
    assert (
        "a, b: not applicable here: grout is not installed: build it as https://github.com/DPDK/grout says" in reported
    )
    assert read(record).plans[0].cases[0].reason
    assert "not applicable" not in done.stdout
    as_json = CliRunner().invoke(app, ["bench", "run", str(file), "--record", str(record), "--json"]).stdout
    assert [one["cases"] for one in json.loads(as_json)["not_applicable"]] == ["a, b"]


def refuses_to_plan_with_the_record_of_another_campaign(tmp_path: Path) -> None:
    file, record = tmp_path / "c.yaml", tmp_path / "r.jsonl"
    file.write_text(FILE.replace("Mine", "Yours"))
    content = _record(record, 1)
    done = CliRunner().invoke(app, ["bench", "run", str(file), "--dry-run", "--record", str(record)])
    assert isinstance(done.exception, UsageFault)
    assert "is the record of the campaign 'mine' with a different campaign file" in str(done.exception)
    assert record.read_bytes() == content


@pytest.mark.parametrize(("n", "wanted"), [(1, ": 1 case, valid"), (2, ": 2 cases, valid")])
def counts_the_cases_of_a_file_that_is_well(n: int, wanted: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("".join(FILE.splitlines(keepends=True)[: 4 + n]))
    assert CliRunner().invoke(app, ["bench", "run", str(file), "--check"]).stdout == f"{file}{wanted}\n"


def reads_a_budget_or_refuses_it() -> None:
    assert [budget_of(text) for text in (None, "90s", "1h30m", "20 min")] == [0, 90, 5400, 1200]
    for text in ("", "0s", "soon"):
        with pytest.raises(UsageFault, match=f"--budget '{text}': expected a time like '90s', '20m' or '1h30m'"):
            budget_of(text)
