"""Files of flows, made by the command from text, and shown."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from dl3.cli.main import app
from dl3.dut.flow_table import table_for
from dl3.model.campaign import Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.flow_file import read_flow_file


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, ["flow", *(str(word) for word in words)])


def the_example_of_text_can_be_imported_and_shown(tmp_path: Path) -> None:
    text, made = tmp_path / "t", tmp_path / "f"
    text.write_text(_run("example", "text").stdout)
    done = _run("import", text, "-o", made, "--timeouts", "30,300")
    assert done.output == f"written: 6 flows to {made}\n"
    shown = _run("list", "--file", made).stdout
    assert shown.startswith(f"{made}: 6 flows, not saved by dl3d")
    assert read_flow_file(made).saved_ms == 0  # or flows would be idle since the file was made
    assert "10.0.0.1 10.1.0.1 tcp 40000 443          via 10.9.0.2 dev east dscp 46" in shown
    page = json.loads(_run("list", "--file", made, "--json", "--after", 4, "--limit", 1).stdout)
    assert page["next"] == 5
    assert page["flows"][0] == {
        "src": "2001:db8::1",
        "dst": "2001:db8:1::1",
        "protocol": "tcp",
        "src_port": 40000,
        "dst_port": 443,
        "vrf": None,
        "action": {"do": "punt"},
        "timeout": None,
        "ends_s": 3600.0,
        "idle_for_s": None,
        "packets": 0,
        "bytes": 0,
    }


def each_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    text = tmp_path / "t"
    text.write_text(
        "# a\n10.0.0.1 x tcp 1 2 drop\n\n10.0.0.1 10.0.0.2 tcp 1 2 drop # well\n10.0.0.1 10.0.0.2 gre idle 1 drop\n"
    )
    done = _run("import", text, "-o", tmp_path / "f")
    first, second = done.stderr.splitlines()
    assert first == f"{text}:2: invalid address 'x': expected an IPv4 or IPv6 address"
    assert second.startswith(f"{text}:5: 'idle 1' is none of the timeouts")
    assert isinstance(done.exception, UsageFault)
    assert str(done.exception) == f"{text}: 2 mistakes; nothing was written"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def only_the_first_mistakes_are_printed(tmp_path: Path) -> None:
    text = tmp_path / "t"
    text.write_bytes(b"\xff\n" * 1000 + b"x" * 2000)
    done = _run("import", text, "-o", tmp_path / "f")
    assert len(done.stderr.splitlines()) == 20
    assert "1,001 mistakes (the first 20 are shown)" in str(done.exception)


@pytest.mark.parametrize("timeouts", ["x", "0", "30,30", "1,2,3,4,5,6,7,8,9", "345601", "30,"])
def timeouts_are_checked(tmp_path: Path, timeouts: str) -> None:
    (tmp_path / "t").touch()
    done = _run("import", tmp_path / "t", "-o", tmp_path / "f", "--timeouts", timeouts)
    assert isinstance(done.exception, UsageFault)
    assert "expected up to 8 different numbers of seconds" in str(done.exception)


def a_file_of_the_white_paper_has_both_directions(tmp_path: Path) -> None:
    made = tmp_path / "f"
    options = ("--flows", 300, "--to-101", "dev east", "--to-201", "dev west dscp 1", "-o", made)
    assert _run("example", "white-paper", *options).output == f"written: 600 flows to {made}\n"
    file = read_flow_file(made)
    assert file.actions["dev"].tolist() == [b"east", b"west"]
    assert (file.flows["action"] == np.where(file.flows["dst4"] >> 24 == 101, 0, 1)).all()
    assert file.flows["dst4"].max() == 201 << 24 | 299
    done = _run("example", "white-paper", "-o", made, "--to-101", "drop idle 1")
    assert isinstance(done.exception, UsageFault)
    assert len(read_flow_file(made).flows) == 600


def a_campaign_measures_with_the_flows_of_the_example(tmp_path: Path) -> None:
    actions = ("--to-101", "via 10.0.2.2 dev right", "--to-201", "via 10.0.1.2 dev left")
    _run("example", "white-paper", "--flows", 70_000, *actions, "-o", tmp_path / "f")
    example = read_flow_file(tmp_path / "f")
    made = read_flow_file(table_for(Traffic(flows=70_000, addresses="white-paper"), tmp_path).path)
    assert len(made.flows) == len(example.flows) == 140_000
    assert all(
        (made.flows[key] == example.flows[key]).all() for key in ("src4", "dst4", "src_port", "dst_port", "proto")
    )
    assert (made.actions[made.flows["action"]] == example.actions[example.flows["action"]]).all()


def both_directions_may_have_one_action(tmp_path: Path) -> None:
    _run("example", "white-paper", "--flows", 2, "-o", tmp_path / "f")
    file = read_flow_file(tmp_path / "f")
    assert (len(file.actions), file.flows["action"].tolist()) == (1, [0] * 4)


def a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(64))
    assert "is not a file of flows" in str(_run("list", "--file", tmp_path / "f").exception)


def a_file_that_cannot_be_written_is_a_failure() -> None:
    done = _run("example", "white-paper", "-o", "/proc/flows")
    assert isinstance(done.exception, Fault)
