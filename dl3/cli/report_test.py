"""The command: what it refuses before it reads or writes anything."""

from pathlib import Path

from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.model.fault import UsageFault


def prints_one_thing_for_programs_at_a_time(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(tmp_path / "r.jsonl"), "--csv", "--json"])
    assert isinstance(result.exception, UsageFault)
    assert str(result.exception) == "--csv and --json are mutually exclusive"
    assert result.stdout == ""
