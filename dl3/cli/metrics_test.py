"""What the command 'dl3 metrics' prints, and what it refuses."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.metrics.fake import Fake, of_dl3d, running
from dl3.model.fault import Fault, UsageFault


def _run(*words: str) -> str:
    """What it prints; a Fault is raised, as main() expects."""
    result = CliRunner().invoke(app, ["metrics", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def prints_the_metrics_once(tmp_path: Path) -> None:
    with running(tmp_path / "s", Fake(of_dl3d())):
        text = _run("--once", "--socket", str(tmp_path / "s"))
    assert f'dl3d_received_packets_total{{socket="{tmp_path}/s"}} 100.0\n' in text


def prints_dashboard_and_rules_without_any_program() -> None:
    assert json.loads(_run("--dashboard"))["title"] == "D-L3"
    assert yaml.safe_load(_run("--rules"))["groups"][0]["name"] == "dl3"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--once", "--rules"), "use one of them"),
        (("--socket", "/a", "--generator", "/a"), "given twice"),
        (("--listen", "nowhere"), "--listen nowhere: give an address"),
        (tuple(word for i in range(65) for word in ("--socket", f"/{i}")), "65 sockets are too many"),
    ],
)
def refuses_what_cannot_be(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageFault, match=sentence):
        _run(*words)


def an_address_that_is_not_this_machines_is_one_sentence() -> None:
    with pytest.raises(Fault, match=r"^cannot listen at 203\.0\.113\.7:1: .*--listen$"):
        _run("--listen", "203.0.113.7:1")
