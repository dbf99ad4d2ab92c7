"""Filter expressions, compiled by libpcap."""

import pytest

from dl3.control.bpf import compile_filter
from dl3.model.fault import UsageFault


def makes_instructions() -> None:
    assert compile_filter("ether proto 0x0806") == [
        [0x28, 0, 0, 12],  # the EtherType
        [0x15, 0, 1, 0x0806],
        [0x06, 0, 0, 65535],
        [0x06, 0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("udp and prt 53", "at 'and prt 53', after 'udp'"),
        ("udp port 99999", "at 'port 99999', after 'udp'"),
        ("(udp", r"at '\(udp'"),
        ("udp\0", "no zero bytes"),
    ],
)
def says_where_a_mistake_is(expression: str, place: str) -> None:
    with pytest.raises(UsageFault, match=place):
        compile_filter(expression)
