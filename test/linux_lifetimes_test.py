"""IPv6 routes with a lifetime, which the kernel keeps for a while after they expire; the kernel, then dl3d."""

import time

from harness.network import Network
from harness.probes import MOMENT_S, PATIENCE_S, arrives, packet_from, wait_reached
from harness.router import Dl3dRouter
from harness.wire import wait_until

TARGET = "2001:db8:f8::1"
PREFIX, FORGOTTEN = "2001:db8:f8::/48", "2001:db8:f9::/48"


def _goes_to(network: Network, name: str, within_s: float = PATIENCE_S) -> bool:
    return arrives(network["h0"], packet_from(network["h0"], TARGET), network[name], TARGET, within_s)


def a_route_whose_lifetime_is_over_is_no_difference(network: Network) -> None:
    """The first one: half a minute after the first lifetime in a network the kernel collects all expired routes."""
    route = f"{FORGOTTEN} via {network['h1'].address(6)} dev p1"
    network.ip(f"route add {route} expires 1")
    if isinstance(network.the_router, Dl3dRouter):
        time.sleep(0.9)
        for _ in range(10):  # before and after it expires
            assert network.the_router.differences() == []
            time.sleep(0.02)
    namespace = network.the_router.namespace
    wait_until(lambda: "expires -" in namespace.ip("-6", "route", "show", FORGOTTEN), "the lifetime was over")
    assert "expires -" in namespace.ip("-6", "route", "show", FORGOTTEN), "the kernel keeps it for half a minute"


def a_route_counts_until_its_lifetime_is_over(network: Network) -> None:
    for name in ("h1", "h2"):
        wait_reached(network, network[name].address(6))
    network.ip(f"route add {PREFIX} via {network['h2'].address(6)} dev p2 metric 2048")
    network.ip(f"route add {PREFIX} via {network['h1'].address(6)} dev p1 expires 600")
    with network.through_workers(1):
        assert _goes_to(network, "h1")
    network.ip(f"route replace {PREFIX} via {network['h1'].address(6)} dev p1 expires 1")
    wait_until(lambda: _goes_to(network, "h2", 2 * MOMENT_S), "the lifetime was over")
    with network.through_workers(1):
        assert _goes_to(network, "h2")
