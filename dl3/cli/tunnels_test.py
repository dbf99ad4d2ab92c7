"""What 'dl3 show tunnels' prints."""

import pytest

from dl3.cli.tunnels import name_of, way
from dl3.control.tunnel_replies import Tunnel

ENDS = {"name": "gre-192.0.2.9", "kind": "gre", "local": "192.0.2.1", "remote": "192.0.2.9", "key": 7, "dport": None}
COUNTS = {"tx_packets": 3, "tx_bytes": 300, "rx_packets": 4, "rx_bytes": 400}


def _tunnel(**keys: object) -> Tunnel:
    return Tunnel.model_validate({**ENDS, **COUNTS, "via": None, "port": None, "verdict": "no_route", **keys})


@pytest.mark.parametrize(
    ("tunnel", "text"),
    [
        (_tunnel(), "no_route"),
        (_tunnel(kind="vxlan", remote=None, verdict=None), None),
        (_tunnel(port="right", verdict="forward"), "dev right"),
        (_tunnel(port="right", via="198.51.100.9", verdict="forward"), "via 198.51.100.9 dev right"),
    ],
)
def the_other_end_is_reached_by_a_way(tunnel: Tunnel, text: str | None) -> None:
    assert way(tunnel) == text


def a_key_or_a_port_is_no_amount() -> None:
    assert [name_of(number) for number in (123456, None)] == ["123456", None]
