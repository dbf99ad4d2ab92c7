"""Resilient groups: flows in use keep their next hop when members or weights change; the router is the kernel, then dl3d."""

import pytest
from harness.flows import EACH_ONCE, Book, hop_words, send_flows
from harness.network import BENCHMARK, FAMILIES, Network
from harness.probes import wait_reached
from harness.wire import wait_until

NAMES = ("h1", "h2", "n2")
N_FLOWS = 512
IDLE_FOR_AN_HOUR = "resilient buckets 64 idle_timer 3600"


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


def _change(network: Network, *lines: str) -> None:
    """Change the group. Linux counts a bucket that is used within the clock tick of its last move as unused."""
    network.ip(*lines)
    namespace = network.the_router.namespace
    wait_until(
        lambda: "idle_time 0 " not in namespace.run("ip", "nexthop", "bucket", "show", "id", "10"), "a tick has passed"
    )


@pytest.fixture
def routed(network: Network, family: int) -> Network:
    """Objects 1 to 3 lead to NAMES; a route by group 10 of the first two."""
    for name in NAMES:
        wait_reached(network, network[name].address(family))
    _change(
        network,
        *(f"nexthop add id {i} {hop_words(network, family, name)}" for i, name in enumerate(NAMES, 1)),
        f"nexthop add id 10 group 1/2 type {IDLE_FOR_AN_HOUR}",
        f"route add {BENCHMARK[family]} nhid 10",
    )
    return network


def _send(network: Network, family: int) -> Book:
    return send_flows(network, family, NAMES, N_FLOWS, EACH_ONCE)


def _n_moved(before: Book, after: Book) -> int:
    return sum(after.ways[number] != ways for number, ways in before.ways.items())


@pytest.mark.parametrize("members", ["1,1/2,9", "1/2/3"], ids=["weights", "third"])
def no_flow_in_use_moves_when_members_change(routed: Network, family: int, members: str) -> None:
    before = _send(routed, family)
    _change(routed, f"nexthop replace id 10 group {members} type resilient")
    assert _n_moved(before, _send(routed, family)) == 0


def flows_of_a_removed_member_move_and_no_others(routed: Network, family: int) -> None:
    _change(routed, f"nexthop replace id 10 group 1/2/3 type {IDLE_FOR_AN_HOUR}")
    before = _send(routed, family)
    _change(routed, "nexthop replace id 10 group 1/2 type resilient")
    after = _send(routed, family)
    assert "n2" in before.shares()
    assert set(after.shares()) == {"h1", "h2"}
    assert _n_moved(before, after) == sum(ways == {"n2"} for ways in before.ways.values())


def unused_buckets_follow_the_weights_at_once(routed: Network, family: int) -> None:
    _change(routed, "nexthop replace id 10 group 1,1/2,9 type resilient")
    # Linux draws a secret at its start: more than six standard deviations.
    assert _send(routed, family).shares()["h2"] == pytest.approx(0.9, abs=0.095)
