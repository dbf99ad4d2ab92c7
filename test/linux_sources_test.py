"""Packets whose source address is the router's own; the router is the kernel, then dl3d.

Linux forwards none of IPv4 unless accept_local is set on the input interface, and does not check IPv6 sources.
"""

from ipaddress import IPv4Address

import pytest
from harness.network import Network
from harness.probes import arrives, packet_from, vanishes, wait_reached
from harness.wire import wait_until

TARGET = "10.0.9.2"
OWN = ("10.0.0.1", "10.0.1.1", "10.0.3.1")  # of the input port, of the output port, and of neither
N_SENT = 3


def _passes(network: Network, source: str, target: str = TARGET) -> bool:
    return arrives(network["h0"], packet_from(network["h0"], target, src=source), network["h1"], target)


def _is_stopped(network: Network, source: str, target: str = TARGET) -> bool:
    return vanishes(network["h0"], packet_from(network["h0"], target, src=source), network["h1"], target)


def _n_left_to_linux(network: Network) -> int:
    """Packets from own addresses that workers punted."""
    assert network.dl3d
    return sum(row["handed"] for row in network.dl3d.call("drops")["verdicts"] if row["name"] == "own_source")


@pytest.fixture(autouse=True)
def _reached(network: Network) -> None:
    """Neighbours are resolved, so that a packet that may pass does so at once."""
    wait_reached(network, TARGET)


@pytest.mark.parametrize("source", OWN)
def a_packet_from_an_address_of_the_router_ends_there(network: Network, source: str) -> None:
    before = _n_left_to_linux(network) if network.dl3d else 0
    for _ in range(N_SENT):
        assert _is_stopped(network, source)
    if network.dl3d:
        wait_until(lambda: _n_left_to_linux(network) >= before + N_SENT, "workers had punted them")
        assert _n_left_to_linux(network) - before == N_SENT
        network.dl3d.check()
    with network.through_workers(1):
        assert _passes(network, "10.0.0.99")


def an_address_counts_while_the_router_has_it(network: Network) -> None:
    with network.through_workers(2):
        assert _passes(network, "203.0.113.7")
        network.ip("address add 203.0.113.7/32 dev p2")
        assert _is_stopped(network, "203.0.113.7")
        network.ip("address del 203.0.113.7/32 dev p2")
        assert _passes(network, "203.0.113.7")


def a_local_route_counts_as_a_whole(network: Network) -> None:
    network.ip("route add local 203.0.113.0/24 dev lo")
    assert _is_stopped(network, "203.0.113.200")
    with network.through_workers(1):
        assert _passes(network, "203.0.114.1")
    network.ip("route del local 203.0.113.0/24 dev lo")
    with network.through_workers(1):
        assert _passes(network, "203.0.113.200")


def more_addresses_than_the_filter_distinguishes_are_all_ours(network: Network) -> None:
    own = [f"10.200.{i // 250}.{1 + i % 250}" for i in range(1000)]
    network.ip(*(f"address add {address}/32 dev p3" for address in own))
    assert _is_stopped(network, own[0])
    assert _is_stopped(network, own[-1])
    with network.through_workers(2):
        assert _passes(network, "10.200.0.251")
        assert _passes(network, "10.0.0.99")


def accept_local_lets_them_pass(network: Network) -> None:
    with network.while_set(ipv4__conf__p0__accept_local="1"):
        for source in OWN:
            assert _passes(network, source)
    assert _is_stopped(network, OWN[0])


@pytest.mark.parametrize("source", [0x00000001, 0x00FFFFFF, 0xA9FE0101, 0xF0000000, 0xFFFFFFFE])
def sources_that_linux_takes_pass(network: Network, source: int) -> None:
    """Without Linux as control plane they are martians (RFC 1812)."""
    with network.through_workers(1):
        assert _passes(network, str(IPv4Address(source)))


@pytest.mark.parametrize("first", ["0.1", "169.254", "240.1"])
def networks_that_rfcs_keep_off_the_wire_are_linuxs_to_give(network: Network, first: str) -> None:
    router, host = f"{first}.1.1", f"{first}.1.2"
    h0, h1 = network["h0"], network["h1"]
    network.ip(f"address add {router}/24 dev p1", f"neighbour replace {host} lladdr {h1.mac} dev p1")
    assert _is_stopped(network, router)
    with network.through_workers(2):
        assert _passes(network, host)
        assert arrives(h0, packet_from(h0, host), h1, host)


@pytest.mark.parametrize("source", [0x00000000, 0x7F000001, 0xE0000001, 0xFFFFFFFF])
def sources_that_linux_refuses_do_not(network: Network, source: int) -> None:
    assert _is_stopped(network, str(IPv4Address(source)))


def ip6_packets_from_mapped_addresses_pass(network: Network) -> None:
    target = network["h1"].address(6)
    wait_reached(network, target)
    with network.through_workers(1):
        assert _passes(network, "::ffff:10.0.0.2", target)


def ip6_packets_from_the_router_pass(network: Network) -> None:
    target = network["h1"].address(6)
    wait_reached(network, target)
    with network.through_workers(1):
        assert _passes(network, "2001:db8:a3::1", target)


def an_address_of_an_interface_that_is_down_is_named(network: Network) -> None:
    """The kernel nevertheless treats it as its own; workers do not, and report it."""
    words = "IPv4 address on an interface that is set down"
    assert network.names_supported(words)
    network.ip("link add hidden0 type veth peer name hidden1", "address add 203.0.113.9/32 dev hidden0")
    assert network.names_unsupported(words)
    if not network.dl3d:
        assert _is_stopped(network, "203.0.113.9")
    network.ip("link set hidden0 up")
    assert network.names_supported(words)
    assert _is_stopped(network, "203.0.113.9")
    network.ip("link del hidden0")
    assert network.names_supported(words)
    assert _passes(network, "203.0.113.9")
