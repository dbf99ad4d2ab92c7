"""The reverse path filter (rp_filter): which sources pass; the router is the kernel, then dl3d, whose workers check them."""

from collections.abc import Iterator

import pytest
from harness.network import Network
from harness.probes import arrives, listening, packet_from, vanishes, wait_reached
from harness.wire import wait_until

TARGET = "10.0.9.2"
AWAY = "198.51.100.0/24"  # the sources of most tests here
SOURCE = "198.51.100.7"
STRICT, LOOSE = "1", "2"


@pytest.fixture(autouse=True)
def _reached(network: Network) -> None:
    """Neighbours are resolved, so that a packet that may pass does so at once."""
    for name in ("h0", "h2", "n2"):
        wait_reached(network, TARGET, name)


@pytest.fixture
def strict(network: Network) -> Iterator[Network]:
    """With rp_filter 1 on p0 and p2."""
    with network.while_set(ipv4__conf__p0__rp_filter=STRICT, ipv4__conf__p2__rp_filter=STRICT):
        yield network


@pytest.fixture
def loose(network: Network) -> Iterator[Network]:
    """With rp_filter 2 on p0 and p2."""
    with network.while_set(ipv4__conf__p0__rp_filter=LOOSE, ipv4__conf__p2__rp_filter=LOOSE):
        yield network


def _passes(network: Network, source: str, host: str = "h0") -> bool:
    """Workers forward it."""
    frame = packet_from(network[host], TARGET, src=source)
    with network.through_workers(1):
        return arrives(network[host], frame, network["h1"], TARGET)


def _n_failed(network: Network) -> int:
    assert network.dl3d
    return network.dl3d.account().drops.get("rpf_failed", 0)


def _fails(network: Network, source: str, host: str = "h0") -> bool:
    """Workers drop it, and say why."""
    before = _n_failed(network) if network.dl3d else 0
    stopped = vanishes(network[host], packet_from(network[host], TARGET, src=source), network["h1"], TARGET)
    if network.dl3d:
        wait_until(lambda: _n_failed(network) > before, "a worker had dropped it")
        assert _n_failed(network) == before + 1
        network.dl3d.check()
    return stopped


def sources_are_not_checked_without_it(network: Network) -> None:
    for source in ("10.0.0.77", "10.0.2.77", SOURCE):
        assert _passes(network, source)


def strict_takes_sources_that_are_routed_back(strict: Network) -> None:
    strict.ip(f"route add {AWAY} via 10.0.0.2")
    for source in ("10.0.0.2", "10.0.0.77", SOURCE):
        assert _passes(strict, source)
    for source in ("10.0.2.77", "10.0.9.7", "203.0.113.7"):
        assert _fails(strict, source)
    assert strict.names_supported("rp_filter")


def strict_follows_routes(strict: Network) -> None:
    assert _fails(strict, SOURCE)
    strict.ip(f"route add {AWAY} via 10.0.0.2")
    assert _passes(strict, SOURCE)
    assert _fails(strict, SOURCE, "h2")
    strict.ip(f"route replace {AWAY} via 10.0.2.2")
    assert _fails(strict, SOURCE)
    assert _passes(strict, SOURCE, "h2")


def loose_takes_sources_that_are_routed_anywhere(loose: Network) -> None:
    loose.ip(f"route add {AWAY} via 10.0.2.2")
    for source in ("10.0.0.77", "10.0.2.77", "10.0.9.7", SOURCE):
        assert _passes(loose, source)
    assert _fails(loose, "203.0.113.7")
    assert loose.names_supported("rp_filter")


def a_default_route_takes_all_sources(loose: Network) -> None:
    loose.ip("route add default via 10.0.2.2")
    assert _passes(loose, SOURCE)
    with loose.while_set(ipv4__conf__p0__rp_filter=STRICT, ipv4__conf__p2__rp_filter=STRICT):
        assert _fails(loose, SOURCE)
        assert _passes(loose, SOURCE, "h2")
        assert _fails(loose, "10.0.0.77", "h2")
    loose.ip("route del default via 10.0.2.2")


@pytest.mark.parametrize(
    ("every", "own", "passes"),
    [("0", "2", True), ("2", "0", True), ("1", "2", True), ("2", "1", True), ("1", "0", False), ("0", "1", False)],
)
def the_higher_value_of_both_settings_counts(network: Network, every: str, own: str, passes: bool) -> None:
    with network.while_set(ipv4__conf__all__rp_filter=every, ipv4__conf__p0__rp_filter=own):
        assert (_passes if passes else _fails)(network, "10.0.2.77")
        assert _fails(network, SOURCE)


@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit"])
@pytest.mark.parametrize("mode", [STRICT, LOOSE])
def a_source_that_is_refused_as_a_destination_fails(network: Network, kind: str, mode: str) -> None:
    network.ip(f"route add {kind} {AWAY}")
    try:
        assert _passes(network, SOURCE)
        with network.while_set(ipv4__conf__p0__rp_filter=mode):
            assert _fails(network, SOURCE)
    finally:
        network.ip(f"route del {kind} {AWAY}")


@pytest.mark.parametrize("order", [("10.0.0.2", "10.0.2.2"), ("10.0.2.2", "10.0.0.2")])
def any_member_of_a_multipath_route_counts(strict: Network, order: tuple[str, str]) -> None:
    strict.ip(f"route add {AWAY} " + " ".join(f"nexthop via {via} weight 9" for via in order))
    for source in (SOURCE, "198.51.100.8", "198.51.100.9"):
        assert _passes(strict, source)
        assert _passes(strict, source, "h2")
    with strict.while_set(ipv4__conf__p3__rp_filter=STRICT):
        assert _fails(strict, SOURCE, "n2")


@pytest.mark.parametrize("kind", ["mpath", "resilient buckets 64"])
def any_member_of_a_nexthop_group_counts(strict: Network, kind: str) -> None:
    strict.ip("nexthop add id 1 via 10.0.0.2 dev p0", "nexthop add id 2 via 10.0.3.3 dev p3")
    strict.ip(f"nexthop add id 10 group 1/2 type {kind}", f"route add {AWAY} nhid 10")
    assert _passes(strict, SOURCE)
    assert _fails(strict, SOURCE, "h2")
    strict.ip("nexthop add id 3 via 10.0.2.2 dev p2", f"nexthop replace id 10 group 2/3 type {kind.split()[0]}")
    assert _fails(strict, SOURCE)
    assert _passes(strict, SOURCE, "h2")


@pytest.mark.parametrize("mode", [STRICT, LOOSE])
@pytest.mark.parametrize("source", ["10.0.0.1", "10.0.1.1", "10.0.3.1", "10.0.0.255", "10.0.2.255"])
def own_and_broadcast_addresses_never_pass(network: Network, mode: str, source: str) -> None:
    h0, h1 = network["h0"], network["h1"]
    with network.while_set(ipv4__conf__p0__rp_filter=mode):
        assert vanishes(h0, packet_from(h0, TARGET, src=source), h1, TARGET)


@pytest.mark.parametrize(("mode", "others_pass"), [(STRICT, False), (LOOSE, True)])
def accept_local_takes_own_addresses_where_their_interface_is(network: Network, mode: str, others_pass: bool) -> None:
    """Left to Linux."""
    h0, h1 = network["h0"], network["h1"]
    with network.while_set(ipv4__conf__p0__rp_filter=mode, ipv4__conf__p0__accept_local="1"):
        assert arrives(h0, packet_from(h0, TARGET, src="10.0.0.1"), h1, TARGET)
        probe = arrives if others_pass else vanishes
        assert probe(h0, packet_from(h0, TARGET, src="10.0.3.1"), h1, TARGET)
        assert _passes(network, "10.0.0.77")


def further_addresses_of_an_interface_count(strict: Network) -> None:
    strict.ip("address add 172.31.0.1/24 dev p0", "address add 172.31.1.1/24 dev p2")
    assert _passes(strict, "172.31.0.9")
    assert _fails(strict, "172.31.1.9")
    assert _passes(strict, "172.31.1.9", "h2")
    strict.ip("address del 172.31.0.1/24 dev p0")
    assert _fails(strict, "172.31.0.9")


def an_interface_without_an_address_is_strict(loose: Network) -> None:
    """Even if it is set to be loose."""
    loose.ip(f"route add {AWAY} via 10.0.2.2")
    assert _passes(loose, SOURCE)
    loose.ip("address del 10.0.0.1/24 dev p0")
    assert _fails(loose, SOURCE)
    loose.ip(f"route replace {AWAY} dev p0")
    assert _passes(loose, SOURCE)
    loose.ip(f"route replace {AWAY} via 10.0.2.2", "address add 10.0.0.1/24 dev p0")
    assert _passes(loose, SOURCE)


def neither_ttl_nor_redirects_come_first(strict: Network) -> None:
    """A packet whose source fails is not answered."""
    h0, h2 = strict["h0"], strict["h2"]
    expired = packet_from(h0, TARGET, src=h2.address(4), ttl=1)
    with listening(h2) as out:
        assert vanishes(h0, expired, h2, h2.address(4))
        assert not [frame for frame in out.drain() if frame[23:24] == b"\x01" and frame[34:35] == b"\x0b"]


def ip6_sources_are_not_checked(strict: Network) -> None:
    target = strict["h1"].address(6)
    wait_reached(strict, target)
    h0 = strict["h0"]
    with strict.through_workers(1):
        assert arrives(h0, packet_from(h0, target, src="2001:db8:ffff::1"), strict["h1"], target)


def a_macvlan_is_left_to_linux(strict: Network) -> None:
    """Its frames arrive on the same port, by another address."""
    words = "rp_filter on an interface"
    assert strict.names_supported(words)
    strict.ip("link add mv0 link p0 type macvlan mode bridge", "link set mv0 up")
    try:
        assert strict.names_unsupported(words)
        h0, h1 = strict["h0"], strict["h1"]
        assert arrives(h0, packet_from(h0, TARGET, src="10.0.0.77"), h1, TARGET)
        assert vanishes(h0, packet_from(h0, TARGET, src="10.0.2.77"), h1, TARGET)
    finally:
        strict.ip("link del mv0")
    assert strict.names_supported(words)


def packets_to_the_router_are_linuxs_to_check(strict: Network) -> None:
    h0, h2 = strict["h0"], strict["h2"]
    echo = packet_from(h0, "10.0.0.1", src=h2.address(4))
    assert vanishes(h0, echo, h2, h2.address(4))
