"""Which packets share a next hop, by Linux's multipath hash policy; the router is the kernel, then dl3d.

Linux's hash has a random seed, so a flow need not take the same next hop on both routers.
"""

from collections.abc import Iterator

import pytest
from harness.flows import NUMBER, TARGETS, Book, Traffic, Vary, by_hosts, by_labels, by_ports, send_flows, spread
from harness.frames import IP, Ether, IPv6, Packet
from harness.network import FAMILIES, Network
from harness.router import router_mac
from harness.wire import wait_until
from scapy.layers.inet import ICMP
from scapy.layers.inet6 import ICMPv6TimeExceeded

NEIGHBOURS = ("n2", "n3", "n4", "n5")
EVEN = (1, 1, 1, 1)
# Linux draws a secret at its start: with FEW flows each of four next hops is used, and with N_FLOWS each has LEAST_SHARE,
# but once in 10^10 times.
N_FLOWS, FEW = 400, 100
LEAST_SHARE = 0.25 - 0.14
LAYER3, LAYER4, INNER, CUSTOM = "0", "1", "2", "3"
LEFT = "multipath route by hash policy 2 or 3"
SOURCE_PORT = "0x10"  # a bit of fib_multipath_hash_fields
TIME_EXCEEDED = {4: 11, 6: 3}
ROUTERS = {4: "10.98.{}.1", 6: "2001:db8:98:{}::1"}


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


@pytest.fixture(autouse=True)
def _four_next_hops(network: Network, family: int) -> Iterator[None]:
    """A route with four next hops; policy 1 afterwards, whatever a test has set. dl3d polls it."""
    spread(network, family, NEIGHBOURS, EVEN)
    yield
    _set(network, family, LAYER4)
    wait_until(lambda: network.names_supported(LEFT), "workers forward again")
    wait_until(lambda: _n_ways(network, family, by_ports) == len(NEIGHBOURS), "ports count again")


def _set(network: Network, family: int, policy: str) -> None:
    network.sysctl(**{f"ipv{family}__fib_multipath_hash_policy": policy})


def _book(network: Network, family: int, vary: Vary, n_flows: int, by_workers: bool = True) -> Book:
    return send_flows(network, family, NEIGHBOURS, n_flows, Traffic(vary=vary, by_workers=by_workers))


def _ways(network: Network, family: int, vary: Vary, by_workers: bool = True) -> dict[int, set[str]]:
    """The next hop of each flow, which all of its packets take."""
    book = _book(network, family, vary, N_FLOWS, by_workers)
    assert book.wanderers() == []
    return book.ways


def _n_ways(network: Network, family: int, vary: Vary, by_workers: bool = True) -> int:
    """The number of next hops that are used; a flow may move meanwhile, when the policy changes."""
    return len(_book(network, family, vary, FEW, by_workers).shares())


def _assert_spread(network: Network, family: int, vary: Vary, by_workers: bool = True) -> None:
    ways = _ways(network, family, vary, by_workers)
    for name in NEIGHBOURS:
        assert sum(name in names for names in ways.values()) / N_FLOWS > LEAST_SHARE


def policy_0_keeps_the_flows_of_a_pair_of_hosts_together(network: Network, family: int) -> None:
    """The sysctl is followed at run time, without a message of the kernel."""
    assert _n_ways(network, family, by_ports) == len(NEIGHBOURS)
    _set(network, family, LAYER3)
    wait_until(lambda: _n_ways(network, family, by_ports) == 1, "ports do not count")
    _assert_spread(network, family, by_hosts)
    assert network.names_supported(LEFT)


def policy_0_of_one_family_changes_nothing_for_the_other(network: Network, family: int) -> None:
    other = 10 - family
    spread(network, other, NEIGHBOURS, EVEN)
    _set(network, family, LAYER3)
    wait_until(lambda: _n_ways(network, family, by_ports) == 1, "ports do not count")
    assert _n_ways(network, other, by_ports) == len(NEIGHBOURS)


@pytest.mark.parametrize("family", [6], indirect=True)
def policy_0_spreads_flow_labels_and_policy_1_does_not(network: Network, family: int) -> None:
    assert _n_ways(network, family, by_labels) == 1
    _set(network, family, LAYER3)
    wait_until(lambda: _n_ways(network, family, by_ports) == 1, "ports do not count")
    _assert_spread(network, family, by_labels)


def _by_errors(plain: bytes, family: int, number: int) -> bytes:
    """ICMP errors of many routers, each about a packet that the target sent to the host of flow `number`."""
    host = Ether(by_hosts(plain, family, number)).payload
    quoted = host.copy()
    quoted.src, quoted.dst = host.dst, host.src
    message: Packet
    if family == 4:
        message = IP(src=ROUTERS[4].format(number % 250), dst=TARGETS[4]) / ICMP(type=TIME_EXCEEDED[4])
    else:
        message = IPv6(src=ROUTERS[6].format(number), dst=TARGETS[6]) / ICMPv6TimeExceeded()
    frame = bytes(Ether(src="02:00:00:01:00:02", dst=router_mac(0)) / message / bytes(quoted))
    return frame[:-4] + NUMBER.pack(number)


def policy_0_sends_icmp_errors_where_the_flow_goes(network: Network, family: int) -> None:
    """The error about a packet to a host takes the next hop of the packets from that host."""
    _set(network, family, LAYER3)
    wait_until(lambda: _n_ways(network, family, by_ports) == 1, "ports do not count")
    assert _ways(network, family, _by_errors) == _ways(network, family, by_hosts)


@pytest.mark.parametrize("policy", [INNER, CUSTOM], ids=["inner", "custom"])
def policies_2_and_3_are_applied_by_linux(network: Network, family: int, policy: str) -> None:
    """Policy 3 hashes the source port alone here."""
    network.sysctl(**{f"ipv{family}__fib_multipath_hash_fields": SOURCE_PORT})
    one, many = (by_hosts, by_ports) if policy == CUSTOM else (by_ports, by_hosts)
    _set(network, family, policy)
    wait_until(lambda: network.names_unsupported(LEFT), "the route is left to Linux")
    assert _n_ways(network, family, one, by_workers=False) == 1
    _assert_spread(network, family, many, by_workers=False)
