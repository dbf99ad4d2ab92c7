"""The command that tests dl3gen itself, with a fake dl3gen whose two ports are joined by a cable."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dl3.cli import proof
from dl3.cli.main import app
from dl3.cli.rfc2544_test import Serving, serving
from dl3.model.fault import Fault
from dl3.record.reader import read
from dl3.trial.run import Runner


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "Runner", partial(Runner, sleep=lambda _: None))


def proved(folder: Path, generator: Serving, *words: str) -> Result:
    with serving(folder / "s", generator) as path:
        place = ["--generator", str(path), "--record", str(folder / "r.jsonl"), "--seconds", "0.1"]
        return CliRunner().invoke(app, ["bench", "proof", *place, *words])


def prints_ceiling_pacing_and_floor(tmp_path: Path) -> None:
    done = proved(tmp_path, Serving(device_pps=9e9), "--sizes", "64")
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[2][:7] == ["64", "20.000", "+0.0000%", "4.0", "4.0", "0.0", "yes"]
    assert read(tmp_path / "r.jsonl").proofs[0].wire == "ports of the file"


def hands_the_proof_to_programs(tmp_path: Path) -> None:
    done = proved(tmp_path, Serving(device_pps=9e9), "--sizes", "64,imix", "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert [point["ceiling_pps"] for point in found["points"]] == [20e6, 20e6]
    assert found["record"] == str(tmp_path / "r.jsonl")


def leaves_with_a_fault_when_not_all_is_proved(tmp_path: Path) -> None:
    done = proved(tmp_path, Serving(device_pps=8e6), "--sizes", "64")
    assert isinstance(done.exception, Fault)
    assert "64-byte frames: loop: it lost frames at 8." in done.stdout
