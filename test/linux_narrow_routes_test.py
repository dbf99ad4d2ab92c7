"""Routes for one source prefix or TOS only: Linux handles their packets; the router is the kernel, then dl3d."""

from collections.abc import Mapping
from typing import Any

import pytest
from harness.network import Network
from harness.network import network as address_on
from harness.probes import arrives, packet_from, vanishes, wait_reached

TARGET = {4: "10.8.0.9", 6: "2001:db8:8::9"}
BESIDE = {4: "10.8.0.10", 6: "2001:db8:8::10"}  # hosts may send packets for TARGET back, so that they arrive again
BEHIND = {4: "10.8.0.0/24", 6: "2001:db8:8::/64"}
# The restriction of the route, and the fields of a matching packet.
NARROW: dict[int, tuple[str, dict[str, Any]]] = {4: ("tos 0x10", {"tos": 0x10}), 6: ("from 2001:db8:a0::/64", {})}
OTHER: dict[int, dict[str, Any]] = {4: {"tos": 0}, 6: {"src": "2001:db8:a3::99"}}
NAMED = {4: "TOS-specific route", 6: "source-specific route"}


def _goes_to(network: Network, family: int, name: str, fields: Mapping[str, Any]) -> bool:
    frame = packet_from(network["h0"], TARGET[family], **fields)
    return arrives(network["h0"], frame, network[name], TARGET[family])


@pytest.mark.parametrize("family", [4, 6])
def a_narrow_route_decides_about_its_packets_only(network: Network, family: int) -> None:
    narrow, its_own = NARROW[family]
    other = packet_from(network["h0"], BESIDE[family], **OTHER[family])
    for name in ("h1", "h2"):
        wait_reached(network, network[name].address(family))
    # ip() returns once verify finds no difference, even while the prefix has no other route.
    network.ip(f"route add {BEHIND[family]} {narrow} via {network['h1'].address(family)}")
    assert _goes_to(network, family, "h1", its_own)
    assert vanishes(network["h0"], other, network["h1"], BESIDE[family])
    network.ip(
        f"route del {BEHIND[family]} {narrow}", f"route add {BEHIND[family]} via {network['h2'].address(family)}"
    )
    assert network.names_supported(NAMED[family])
    network.ip(f"route add {BEHIND[family]} {narrow} via {network['h1'].address(family)}")
    assert network.names_unsupported(NAMED[family])
    assert _goes_to(network, family, "h1", its_own)
    if family == 4:  # for IPv6 the kernel finds no unrestricted route next to such a one
        assert _goes_to(network, family, "h2", OTHER[family])
    network.ip(f"route del {BEHIND[family]} {narrow}")
    assert network.names_supported(NAMED[family])
    with network.through_workers(1):
        assert _goes_to(network, family, "h2", its_own)


@pytest.mark.parametrize("family", [4, 6])
def a_narrow_route_to_an_own_address_changes_nothing(network: Network, family: int) -> None:
    """The local table is consulted first; ip() returns once verify finds no difference."""
    narrow, _ = NARROW[family]
    own = f"{address_on(family, 2, 1)}/{32 if family == 4 else 128}"
    wait_reached(network, network["h1"].address(family))
    network.ip(f"route add {own} {narrow} via {network['h1'].address(family)}")
    wait_reached(network, address_on(family, 2, 1))
    network.ip(f"route del {own} {narrow}")
