"""The RFC 2544 commands, against a fake dl3gen."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dl3.bench import far
from dl3.cli.main import app
from dl3.cli.rfc2544_test import Serving, dl3
from dl3.model.fault import Fault, UsageFault
from dl3.record.reader import read
from dl3.trial.run import Runner


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "Runner", partial(Runner, sleep=lambda _: None))


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def prints_the_loss_of_each_load(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(device_pps=10e6), "frame-loss", "--sizes", "64,1518", "--step", "5")
    assert done.exit_code == 0
    found = rows(done.stdout)
    assert found[0] == ["device:", "frame", "loss", "rate", "(26.3)"]
    assert found[2] == ["64", "100%", "20.000", "50.0000%"]
    assert ["1518", "95%", "19.000", "47.3684%"] in found
    assert "deviation: Trials take 0.1 s instead of 60 s (RFC 2544, 24)." in done.stdout
    assert len(read(tmp_path / "r.jsonl").others) == 2


@pytest.mark.parametrize("method", ["frame-loss", pytest.param("forwarding", marks=pytest.mark.long)])
def names_the_loads_without_a_valid_trial_under_the_table(tmp_path: Path, method: str) -> None:
    def fall_behind(results: dict[str, Any]) -> None:
        for stream in results["streams"]:
            if 15e6 < stream["asked_pps"] < 19e6:
                stream["late"] = stream["sent"]

    done = dl3(tmp_path, Serving(device_pps=14e6, spoil=fall_behind), method, "--sizes", "64")
    assert done.exit_code == 0
    assert (
        "\nframes of 64: loads without a valid trial: 2 (at 90, 80 % of the highest rate); their loss is unknown"
        in done.stdout
    )
    (tmp_path / "s").unlink()
    done = dl3(tmp_path, Serving(), method, "--sizes", "64")
    assert "without a valid trial" not in done.stdout


@pytest.mark.long
def prints_bursts_and_the_buffer_behind_them(tmp_path: Path) -> None:
    generator = Serving(device_pps=5e6, buffer_frames=3000)
    done = dl3(tmp_path, generator, "back-to-back", "--sizes", "64", "--resolution", "0.0001", "--repeat", "2")
    row = rows(done.stdout)[2]
    assert row[:3] == ["64", "4,000", "4,000"]
    assert row[5:] == ["20.000", "200.0", "149.7"]


@pytest.mark.long
def makes_all_tests_that_it_can_and_reports_which_it_cannot(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(device_pps=50e6), "rfc2544", "--sizes", "64", "--json")
    found = json.loads(done.stdout)
    assert list(found["results"]) == ["throughput", "latency", "frame loss", "back-to-back", "recovery"]
    assert [len(results) for results in found["results"].values()] == [1, 3, 1, 1, 0]
    assert {"en", "zh"} == set(found["deviations"][0])
    assert "no reset is tested" in done.stderr
    assert "the tester cannot overload" in done.stderr
    assert isinstance(done.exception, Fault)
    assert "1 of the tests ended without a result" in str(done.exception)


def records_which_test_has_no_result_and_why(tmp_path: Path) -> None:
    dl3(tmp_path, Serving(device_pps=50e6), "rfc2544", "--sizes", "64", "--dut-name", "box")
    (skipped,) = read(tmp_path / "r.jsonl").skipped
    assert skipped.job == "|box||recovery|64"
    assert skipped.reason.startswith("not applicable: frames of 64: the tester cannot overload box")
    page = tmp_path / "r.html"
    for lang, name in (("en", "box, recovery, 64-byte frames"), ("zh", "box，系统恢复，64 字节帧")):
        assert CliRunner().invoke(app, ["report", str(tmp_path / "r.jsonl"), "--lang", lang]).exit_code == 0
        assert name in page.read_text(encoding="utf-8")


def takes_the_throughput_of_a_record(tmp_path: Path) -> None:
    dl3(tmp_path, Serving(), "throughput", "--sizes", "64")
    (tmp_path / "s").unlink()
    source = ["--from", str(tmp_path / "r.jsonl"), "--sizes", "64"]
    dl3(tmp_path, Serving(), "back-to-back", *source)
    record = read(tmp_path / "r.jsonl")
    assert (len(record.results), len(record.others)) == (1, 1)
    (tmp_path / "s").unlink()
    done = dl3(tmp_path, Serving(), "back-to-back", *source[:2], "--sizes", "128")
    assert isinstance(done.exception, UsageFault)
    assert "has no throughput of device with frames of 128" in str(done.exception)


def resets_by_the_commands_of_a_person(tmp_path: Path) -> None:
    flag = tmp_path / "done"
    words = ["--sizes", "64", "--process-command", f"touch '{flag}'", "--port-command", "false"]
    done = dl3(tmp_path, Serving(), "reset", *words)
    assert flag.exists()
    assert rows(done.stdout)[2][:2] == ["64", "process"]
    assert "'false' failed with status 1" in done.stderr
    assert isinstance(done.exception, Fault)


def makes_the_one_reset_that_was_asked_for(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(), "reset", "--sizes", "64", "--port-command", "true")
    assert done.exit_code == 0
    assert rows(done.stdout)[2][:2] == ["64", "port"]
    assert "process" not in done.stderr


def reports_that_no_reset_is_possible(tmp_path: Path) -> None:
    done = dl3(tmp_path, Serving(), "reset", "--sizes", "64")
    assert isinstance(done.exception, UsageFault)
    assert "this device cannot be reset from here" in str(done.exception)


@pytest.mark.parametrize("method", ["frame-loss", "back-to-back", "recovery", "reset", "forwarding", "rfc2544"])
def shows_an_example_in_its_help(method: str) -> None:
    done = CliRunner().invoke(app, ["bench", method, "--help"])
    assert done.exit_code == 0
    assert f"Example: dl3 bench {method}" in done.stdout
