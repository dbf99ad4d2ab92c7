"""dl3 host vf."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.host.fixture import Machine
from dl3.model.fault import UsageFault

PF = "0000:03:00.0"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A machine."""
    Machine(nics=(PF,)).write(tmp_path / "root")
    return str(tmp_path / "root")


def _dl3(*words: str) -> Result:
    return CliRunner().invoke(app, ["host", "vf", *words], prog_name="dl3")


def plans_vfs_with_their_settings(root: str, tmp_path: Path) -> None:
    macs = ("--mac", "02:00:00:00:00:0A", "--mac", "02:00:00:00:00:0b")
    done = _dl3(PF, "2", *macs, "--vlan", "7", "--trust", "on", "--for", root, "--output", str(tmp_path / "p.json"))
    assert done.exit_code == 0, done.exception
    text = " ".join(done.stdout.split())
    assert f"VFs of {PF}" in text
    assert "VFs are gone after a boot" in text
    (step,) = json.loads((tmp_path / "p.json").read_text())["steps"]
    assert [(one["mac"], one["vlan"], one["trust"]) for one in step["settings"]] == [
        ("02:00:00:00:00:0a", 7, True),
        ("02:00:00:00:00:0b", 7, True),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((PF, "2", "--mac", "02:00:00:00:00:01"), "one MAC address for 2 VFs: give one for each"),
        ((PF, "3", "--vlan", "1", "--vlan", "2"), "2 values of --vlan for 3 VFs"),
        ((PF, "1", "--mac", "01:00:5e:00:00:01"), "'01:00:5e:00:00:01' is not a MAC address of one station"),
        ((PF, "1", "--vlan", "4095"), "'4095' is not a number from 0 to 4094"),
        ((PF, "1", "--trust", "maybe"), "--trust is on or off, not 'maybe'"),
        ((PF, "64"), "has at most 63 VFs: 64 were requested"),
        (("0000:09:00.0", "1"), "is no network card of this machine"),
    ],
)
def refuses_with_a_sentence(words: tuple[str, ...], said: str, root: str) -> None:
    fault = _dl3(*words, "--for", root).exception
    assert isinstance(fault, UsageFault)
    assert said in str(fault)
    assert len(str(fault).splitlines()) == 1
