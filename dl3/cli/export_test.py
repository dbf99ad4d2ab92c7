"""What the commands 'dl3 export' refuse."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dl3.cli.export import collector_of
from dl3.cli.main import app
from dl3.model.fault import Fault


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sflow", "nowhere.invalid"], "cannot send to the collector nowhere.invalid port 6343"),
        (["ipfix", "127.0.0.1:99999"], "the port is not within 1 to 65535"),
        (["ipfix", "127.0.0.1:0"], "the port is not within 1 to 65535"),
        (["sflow", "127.0.0.1", "--agent", "me"], "--agent me: expected an IPv4 or IPv6 address"),
        (["ipfix", "::1:::"], "is no collector: expected ADDRESS or ADDRESS:PORT"),
        (["sflow", "127.0.0.1"], "no such socket"),
    ],
)
def bad_input_is_refused_in_one_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(Fault) as fault:
        CliRunner().invoke(app, ["export", *words, "--socket", str(tmp_path / "none")], catch_exceptions=False)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("127.0.0.1", "127.0.0.1 port 6343"),
        ("127.0.0.1:99", "127.0.0.1 port 99"),
        ("localhost:99", "localhost port 99"),
        ("::1", "::1 port 6343"),
        ("[::1]", "::1 port 6343"),
        ("[::1]:99", "::1 port 99"),
    ],
)
def a_collector_is_an_address_or_a_name_with_or_without_a_port(text: str, name: str) -> None:
    if ":" in name and not socket.has_ipv6:
        raise AssertionError("a machine without IPv6 cannot run dl3")
    collector = collector_of(text, 6343)
    assert collector.name == name
    collector.close()


def help_is_plain_and_names_each_default() -> None:
    shown = " ".join(CliRunner().invoke(app, ["export", "sflow", "--help"]).stdout.split())
    assert "Own address in the datagrams; default: that of the interface used." in shown
    assert "Example: dl3 export sflow" in shown
    every = CliRunner().invoke(app, ["export", "--help"]).stdout
    assert "--install-completion" not in every
    assert "─" not in every
    assert "drops with their reasons" in " ".join(every.split())
