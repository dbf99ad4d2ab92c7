"""The command dl3 host: findings, records."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.host.fixture import Machine
from dl3.host.recording import record, write


def _dl3(*words: str) -> Result:
    return CliRunner().invoke(app, ["host", *words], prog_name="dl3")


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A record of a machine with a misspelt parameter."""
    made = Machine(n_nodes=2, n_threads=2)
    made.words("isolCPUs=2-3")
    write(record(made.tree()), tmp_path / "m.tar.gz")
    return str(tmp_path / "m.tar.gz")


def prints_the_worst_finding_first_and_leaves_with_1(recorded: str) -> None:
    done = _dl3("--for", recorded)
    assert done.exit_code == 1
    text = " ".join(done.stdout.split())
    assert "2 nodes, 8 cores, 16 threads; 1 network card" in text
    rows = [line.split()[0] for line in done.stdout.splitlines() if line[:1].islower() and line.split()[0] != "notes"]
    assert rows[:2] == ["severity", "blocker"]
    assert "isolCPUs=2-3" in text


def prints_the_same_as_json(recorded: str) -> None:
    done = _dl3("--for", recorded, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)["findings"]
    assert found[0]["check"] == "misspelt_words"
    assert set(found[0]) == {"check", "severity", "what", "why", "source", "remedy"}


def a_folder_may_be_given_instead_of_an_archive(tmp_path: Path) -> None:
    Machine(n_cores=1).write(tmp_path / "root")
    done = _dl3("--for", str(tmp_path / "root"))
    assert "this machine has one core" in " ".join(done.stdout.split())


def leaves_with_2_if_there_are_no_facts(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for name in ("text", "none"):
        done = _dl3("--for", str(tmp_path / name))
        assert (done.exit_code, done.stdout) == (1, "")  # the main program makes 2 of it
        assert type(done.exception).__name__ == "UsageFault"


def records_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "r.tar.gz"
    done = _dl3("record", str(path))
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{path}: ")
    again = _dl3("record", str(path))
    assert "exists" in str(again.exception)
    assert json.loads(_dl3("--for", str(path), "--json").stdout)["facts_digest"]
