"""Parsing of the other machine's address."""

import pytest

from dl3.control.remote import Machine
from dl3.model.fault import UsageFault


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ssh://dut", Machine("dut")),
        ("ssh://admin@192.0.2.7/", Machine("192.0.2.7", "admin")),
        ("ssh://admin@dut.example:2222", Machine("dut.example", "admin", 2222)),
        ("ssh://[2001:db8::7]:22", Machine("2001:db8::7", "", 22)),
    ],
)
def reads_an_address(text: str, wanted: Machine) -> None:
    assert Machine.parse(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "dut", "ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://a:99999", "ssh://a/b"]
)
def refuses_what_is_none(text: str) -> None:
    with pytest.raises(UsageFault, match="the other machine must be given as"):
        Machine.parse(text)
