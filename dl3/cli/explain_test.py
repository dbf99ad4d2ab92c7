"""The command: which trial it picks, what it prints, what it refuses."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli import explain
from dl3.cli.main import app
from dl3.model.fault import UsageFault
from dl3.model.trial import Trial
from dl3.record.journal import append
from dl3.report.explain.fake import event, gap, loss, seen, trial

FULL = "dut rx ring full"
LATE = ("late: the generator sent nothing",)


def lossy(frames: int = 1072) -> Trial:
    evidence = seen([gap(200, 312)], [event(200, 312)])
    return trial({"dut rx ring full": frames}, [loss(200, frames)], evidence)


def record(folder: Path, *trials: Trial) -> Path:
    path = folder / "r.jsonl"
    for one in trials:
        append(path, one)
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, words)])


def takes_the_trial_that_lost_most(tmp_path: Path) -> None:
    path = record(tmp_path, trial({}, (), seen()), lossy(100), lossy(), trial({"unknown": 10**6}, invalid=LATE))
    result = run(path)
    assert result.exit_code == 0
    first, *others = result.stdout.splitlines()
    assert (
        first == f"{path}, line 3: dl3d, 64-byte frames at 10 Mpps for 1 s: 1,072 of 10,000,000 packets lost (0.0107%)"
    )
    assert [line[:2] for line in others] == ["- "] * 2
    assert "Core 3 was taken from dl3d's worker 0 for 312 µs at 0.200 s by kworker/3:1" in others[1]
    assert run(path, "--worst").stdout == result.stdout


def takes_the_trial_of_a_line(tmp_path: Path) -> None:
    path = record(tmp_path, trial({}, (), seen()), lossy(100), lossy())
    assert "100 of 10,000,000" in run(path, "--trial", "2").stdout
    assert "no loss" in run(path, "--trial", "1").stdout


def prints_chinese_text(tmp_path: Path) -> None:
    path = record(tmp_path, lossy())
    first, *others = run(path, "--lang", "zh").stdout.splitlines()
    assert first == f"{path} 第 1 行：dl3d，64 字节帧，10 Mpps，1 s：10,000,000 个包中丢失 1,072 个（0.0107%）"
    assert "核 3 被其他线程占用" in "".join(others)


def takes_a_ceiling_before_an_invalid_trial_and_a_reset_last_of_the_valid(tmp_path: Path) -> None:
    ceiling = trial({FULL: 9}, test="ceiling", dut="l3fwd")
    invalid = trial({FULL: 99}, (), seen(), test="ceiling", invalid=LATE)
    path = record(tmp_path, invalid, ceiling)
    assert run(path).stdout.startswith(f"{path}, line 2: l3fwd")
    append(path, trial({"unknown": 10**6}, (), seen(), test="reset"))
    assert run(path).stdout.startswith(f"{path}, line 3: ")
    append(path, trial({}, (), seen()))
    assert run(path).stdout.startswith(f"{path}, line 4: ")
    append(path, lossy(1))
    assert run(path).stdout.startswith(f"{path}, line 5: ")


def reports_the_headroom_without_loss(tmp_path: Path) -> None:
    path = record(tmp_path, trial({}, (), seen()), trial({}), trial({}, invalid=LATE))
    result = run(path)
    assert f"{path}, line 1: " in result.stdout
    assert "it is fully loaded at about 14.44 Mpps" in result.stdout


def explains_an_invalid_trial_when_there_is_no_other(tmp_path: Path) -> None:
    assert "- This trial is INVALID" in run(record(tmp_path, trial({}, invalid=LATE))).stdout


def takes_the_newest_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "RECORDS", tmp_path / "build")
    monkeypatch.chdir(tmp_path)
    assert isinstance(run().exception, UsageFault)
    old, new = record(tmp_path / "build", lossy(7)), record(tmp_path, lossy(9))
    os.utime(old, (1, 1))
    assert run().stdout.startswith(str(new))
    (tmp_path / "onecore.jsonl").write_text('{"at":"2026-01-01","name":"dl3d"}\n')
    (tmp_path / "empty.jsonl").touch()
    assert run().stdout.startswith(str(new))
    os.utime(new, (0, 0))
    assert run().stdout.startswith(str(old))


def prints_json(tmp_path: Path) -> None:
    found = json.loads(run(record(tmp_path, lossy()), "--json").stdout)
    assert (found["line"], found["lost"], found["sent"]) == (1, 1072, 10_000_000)
    place, cause = found["findings"]
    assert (place["topic"], place["values"]["place"], place["frames"]) == ("place", "dut rx ring full", 1072)
    assert (cause["topic"], cause["values"]["who"], cause["values"]["expected"]) == ("time", "kworker/3:1", 1072)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--trial", "7"], r"line 7 of .*r.jsonl is not a trial; the nearest one is on line 1$"),
        (["--trial", "1", "--worst"], "mutually exclusive"),
    ],
)
def refuses_what_cannot_be(words: list[str], sentence: str, tmp_path: Path) -> None:
    error = run(record(tmp_path, lossy()), *words).exception
    assert isinstance(error, UsageFault)
    with pytest.raises(UsageFault, match=sentence):
        raise error


def refuses_a_record_without_trials(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    error = run(tmp_path / "none.jsonl").exception
    assert isinstance(error, UsageFault)
    assert "no trial in" in str(error)
    assert isinstance(run(tmp_path / "missing.jsonl").exception, UsageFault)
