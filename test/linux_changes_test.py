"""Changes by an operator in Linux apply to packets immediately; the router is the kernel, then dl3d."""

from collections.abc import Iterator

import pytest
from harness.frames import Ether, ip4, ip6
from harness.network import FAMILIES, Host, Network
from harness.network import network as address_of
from harness.probes import MOMENT_S, Only, arrives, listening, misses, packet_from, reaches, vanishes, wait_reached
from harness.router import router_mac
from harness.shell import ping
from harness.traffic import Traffic
from harness.wire import wait_until

from dl3.lab.namespace import Lab

N_AT_LEAST = 200  # packets of each test of traffic
TARGET = {4: "10.8.0.9", 6: "2001:db8:8::9"}
BEHIND = {4: "10.8.0.0/24", 6: "2001:db8:8::/64"}


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


@pytest.fixture
def traffic(network: Network, family: int) -> Iterator[Traffic]:
    """Numbered packets from h0 to TARGET, which may come out at h2 and n2; both neighbours are resolved."""
    for name in ("h2", "n2"):
        assert reaches(network, network[name].address(family))
    frame = packet_from(network["h0"], TARGET[family])
    with listening(network["h0"]) as source, listening(network["h2"]) as one, listening(network["n2"]) as other:
        made = Traffic(source, frame, {"h2": Only(one, TARGET[family]), "n2": Only(other, TARGET[family])})
        yield made


def _ways(network: Network, family: int) -> list[str]:
    """Two next hops to TARGET in the syntax of `ip`."""
    return [f"via {network[name].address(family)} dev p{network[name].link}" for name in ("h2", "n2")]


def _assert_complete(traffic: Traffic) -> None:
    """Each packet came out exactly once."""
    assert traffic.missing == set()
    assert sum(map(len, traffic.came_out.values())) == traffic.n_sent
    assert all(traffic.came_out.values()), "both ways had their turn"


def routes_are_replaced_while_traffic_flows(network: Network, family: int, traffic: Traffic) -> None:
    ways = _ways(network, family)
    network.ip(f"route add {BEHIND[family]} {ways[0]}")
    with network.through_workers(N_AT_LEAST), traffic:
        for i in range(1, 8):
            network.ip(f"route replace {BEHIND[family]} {ways[i % 2]}")
            traffic.go_on(100)
    _assert_complete(traffic)


def next_hops_are_replaced_while_traffic_flows(network: Network, family: int, traffic: Traffic) -> None:
    ways = _ways(network, family)
    network.ip(f"nexthop add id 1 {ways[0]}", f"route add {BEHIND[family]} nhid 1")
    with network.through_workers(N_AT_LEAST), traffic:
        for i in range(1, 8):
            network.ip(f"nexthop replace id 1 {ways[i % 2]}")
            traffic.go_on(100)
    _assert_complete(traffic)


@pytest.mark.parametrize("kind", ["mpath", "resilient buckets 32 idle_timer 0"], ids=["plain", "resilient"])
def groups_are_replaced_while_traffic_flows(network: Network, family: int, traffic: Traffic, kind: str) -> None:
    ways = _ways(network, family)
    network.ip(
        *(f"nexthop add id {i + 1} {way}" for i, way in enumerate(ways)),
        f"nexthop add id 10 group 1 type {kind}",
        f"route add {BEHIND[family]} nhid 10",
    )
    with network.through_workers(N_AT_LEAST), traffic:
        for group in ("1/2", "2", "1,3/2,5", "1"):
            network.ip(f"nexthop replace id 10 group {group} type {kind}")
            traffic.go_on(100)
    _assert_complete(traffic)


def a_member_that_goes_leaves_its_group(network: Network, family: int, traffic: Traffic) -> None:
    ways = _ways(network, family)
    network.ip(
        *(f"nexthop add id {i + 1} {way}" for i, way in enumerate(ways)),
        "nexthop add id 10 group 1/2",
        f"route add {BEHIND[family]} nhid 10",
    )
    with network.through_workers(N_AT_LEAST), traffic:
        traffic.go_on(100)
        network.ip("nexthop del id 1")
        traffic.go_on(100)
        network.ip(f"nexthop add id 1 {ways[0]}", "nexthop replace id 10 group 1", "nexthop del id 2")
        traffic.go_on(100)
    _assert_complete(traffic)


@pytest.mark.parametrize("via", ["global", "link_local"])
def ip4_goes_via_a_neighbour_of_ip6(network: Network, via: str) -> None:
    hop = network["h1"].address(6) if via == "global" else "fe80::ff:fe01:102"
    with network["h1"].owning(TARGET[4]):
        network.ip(f"route add {BEHIND[4]} via inet6 {hop} dev p1")
        wait_reached(network, TARGET[4])
        assert ping(network["h0"].namespace, TARGET[4], count=20).received == 20


def a_port_is_set_down_and_up(network: Network, family: int) -> None:
    target = network["h1"].address(family)
    wait_reached(network, target)
    network.ip("link set p1 down")
    assert misses(network, target)
    assert misses(network, "10.0.9.2")
    assert reaches(network, network["h2"].address(family))
    network.ip("link set p1 up", "address replace 10.0.1.1/24 dev p1", "address replace 2001:db8:a1::1/64 dev p1")
    wait_reached(network, target)


def a_port_that_is_down_takes_nothing_in(network: Network) -> None:
    network.ip("link set p0 down")
    frame = packet_from(network["h0"], network["h1"].address(4))
    assert vanishes(network["h0"], frame, network["h1"], network["h1"].address(4))


@pytest.mark.parametrize("names", [("p1", "p2"), ("all",)], ids=["each", "all"])
def traffic_leaves_a_link_without_carrier(network: Network, family: int, names: tuple[str, ...]) -> None:
    settings = {f"ipv{family}__conf__{name}__ignore_routes_with_linkdown": "1" for name in names}
    h1, h2 = network["h1"], network["h2"]
    with h1.owning(TARGET[family]), h2.owning(TARGET[family]), network.while_set(**settings):
        network.ip(
            f"route add {BEHIND[family]} via {h1.address(family)} metric 10",
            f"route add {BEHIND[family]} via {h2.address(family)} metric 20",
        )
        wait_reached(network, TARGET[family])
        frame = packet_from(network["h0"], TARGET[family])
        assert arrives(network["h0"], frame, h1, TARGET[family])
        h1.ip("link", "set", "eth0", "down")
        wait_until(lambda: arrives(network["h0"], frame, h2, TARGET[family], MOMENT_S), "h2 got what was h1's")
        network.settle_in(h1)
        wait_until(lambda: arrives(network["h0"], frame, h1, TARGET[family], 2 * MOMENT_S), "h1 got its packets again")


def routes_made_without_carrier_count_when_it_comes(network: Network, family: int) -> None:
    h1, h2 = network["h1"], network["h2"]
    frame = packet_from(network["h0"], TARGET[family])
    with h1.owning(TARGET[family]), network.while_set(**{f"ipv{family}__conf__all__ignore_routes_with_linkdown": "1"}):
        h1.ip("link", "set", "eth0", "down")
        wait_until(lambda: "linkdown" in network.the_router.namespace.ip("route"), "p1 lost its carrier")
        network.ip(*(f"route add {BEHIND[family]} via {host.address(family)} metric {host.link}0" for host in (h1, h2)))
        assert arrives(network["h0"], frame, h2, TARGET[family])
        network.settle_in(h1)
        wait_until(lambda: arrives(network["h0"], frame, h1, TARGET[family], 2 * MOMENT_S), "h1 got its packets")


def a_port_set_up_without_carrier_waits_for_it(network: Network, family: int) -> None:
    """Linux then uses it immediately in IPv4, in IPv6 once there is a carrier; ip() compares."""
    h1, h2, port = network["h1"], network["h2"], "p2"
    ways = (f"nexthop via {host.address(family)} dev p{host.link}" for host in (h1, h2))
    network.ip(f"route add {BEHIND[family]} {' '.join(ways)}")
    h2.ip("link", "set", "eth0", "down")
    wait_until(lambda: "NO-CARRIER" in network.the_router.namespace.ip("link", "show", port), "p2 lost its carrier")
    network.ip(f"link set {port} down", f"link set {port} up")
    words = network.the_router.namespace.ip(f"-{family}", "route", "show", BEHIND[family])
    assert (" dead" in words) == (family == 6)
    network.settle_in(h2)
    wait_until(lambda: "NO-CARRIER" not in network.the_router.namespace.ip("link", "show", port), "p2 has a carrier")
    network.the_router.settle()
    assert " dead" not in network.the_router.namespace.ip(f"-{family}", "route", "show", BEHIND[family])


def a_changed_mac_address_of_a_port_counts(network: Network, family: int) -> None:
    wait_reached(network, network["h1"].address(family))
    network.ip("link set p0 address 02:00:00:00:aa:01")
    h0, h1 = network["h0"], network["h1"]
    old = packet_from(h0, h1.address(family))
    assert vanishes(h0, old, h1, h1.address(family))
    new = bytes.fromhex("02000000aa01") + old[6:]
    assert arrives(h0, new, h1, h1.address(family))
    network.forget()
    wait_reached(network, h1.address(family))
    assert "02:00:00:00:aa:01" in h0.ip(f"-{family}", "neighbour")
    network.ip(f"link set p0 address {router_mac(0)}")
    network.forget()


def a_changed_mtu_of_a_port_counts(network: Network, family: int) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(family))
    make = ip4 if family == 4 else ip6
    long_packet = make(h1.address(family), payload=1350, src=h0.address(family))
    if family == 4:
        long_packet.flags = "DF"
    frame = bytes(Ether(src=h0.mac, dst=router_mac(0)) / long_packet)
    assert arrives(h0, frame, h1, h1.address(family))
    network.ip("link set p1 mtu 1300")
    assert vanishes(h0, frame, h1, h1.address(family))
    network.ip("link set p1 mtu 1400")
    assert arrives(h0, frame, h1, h1.address(family))


def a_lower_mtu_for_ipv6_alone_counts_soon(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    frames = {}
    for version in FAMILIES:
        wait_reached(network, h1.address(version))
        frames[version] = packet_from(h0, h1.address(version), payload=1350)
    with network.while_set(ipv6__conf__p1__mtu="1300"):
        wait_until(lambda: vanishes(h0, frames[6], h1, h1.address(6)), "IPv6 packets are too long")
        assert arrives(h0, frames[4], h1, h1.address(4))
        network.ip(f"route add {h1.address(4)} via inet6 {h1.address(6)} dev p1")
        with network.through_workers(1):
            assert arrives(h0, frames[4], h1, h1.address(4))
    wait_until(lambda: arrives(h0, frames[6], h1, h1.address(6), 2 * MOMENT_S), "they are not any more")
    network.forget()


def a_deleted_address_takes_its_network_along(network: Network, family: int) -> None:
    address = address_of(family, 1, 1)
    wait_reached(network, address)
    network.ip(f"address del {address}/{24 if family == 4 else 64} dev p1")
    assert misses(network, address)
    assert misses(network, network["h1"].address(family))
    assert reaches(network, network["h2"].address(family))


def a_new_address_is_the_routers(network: Network, family: int) -> None:
    address = address_of(family, 55, 1)
    assert misses(network, address, "n2")
    network.ip(f"address add {address}/{32 if family == 4 else 128} dev p2")
    assert reaches(network, address, "n2")


@pytest.fixture
def side(network: Network) -> Iterator[Host]:
    """A host on an interface of the router's namespace that is not a port: side0."""
    lab = Lab()
    namespace = lab.namespace("side")
    network.the_router.namespace.ip(
        *("link", "add", "side0", "up", "type", "veth", "peer", "name", "eth0", "netns", namespace.name)
    )
    network.ip("address add 10.0.66.1/24 dev side0", "address add 2001:db8:a66::1/64 dev side0")
    host = Host("side", namespace, 66, 2)
    namespace.ip("link", "set", "eth0", "up")
    for version in FAMILIES:
        namespace.ip("address", "add", f"{host.address(version)}/{24 if version == 4 else 64}", "dev", "eth0")
        namespace.ip("route", "add", "default", "via", address_of(version, 66, 1))
    yield host
    lab.close()


def linux_forwards_to_what_is_no_port(network: Network, family: int, side: Host) -> None:
    assert ping(network["h0"].namespace, side.address(family)).received == 2
    assert ping(side.namespace, network["h0"].address(family)).received == 2
    assert network.names_unsupported("side0")
    network.ip("link del side0")
    assert misses(network, side.address(family))
    assert network.names_supported("side0")


def a_rule_decides_as_in_linux(network: Network, family: int) -> None:
    target = network["h1"].address(family)
    wait_reached(network, target)
    where = "from 10.0.0.2" if family == 4 else "from 2001:db8:a0::2"
    network.ip(f"route add prohibit {'0.0.0.0/0' if family == 4 else '::/0'} table 100")
    with network.rule(family, f"{where} lookup 100"):
        assert misses(network, target)
        assert reaches(network, target, "n2")
        assert network.names_unsupported("rule")
    wait_reached(network, target)
    assert network.names_supported("rule")


def a_forward_hook_of_nftables_is_honoured(network: Network, family: int) -> None:
    one, other = network["h1"].address(family), network["h2"].address(family)
    wait_reached(network, one)
    nft = network.the_router.namespace
    nft.run("nft", "add table inet guard; add chain inet guard onward { type filter hook forward priority 0; }")
    try:
        word = "ip" if family == 4 else "ip6"
        nft.run("nft", f"add rule inet guard onward {word} daddr {one} drop")
        network.the_router.settle()
        assert misses(network, one)
        assert reaches(network, other)
        assert network.names_unsupported("nftables")
    finally:
        nft.run("nft", "delete table inet guard")
    network.the_router.settle()
    wait_reached(network, one)
    assert network.names_supported("nftables")


def the_reverse_path_is_checked_where_linux_checks_it(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(4))
    spoofed = packet_from(h0, h1.address(4), src="10.0.2.77")
    assert arrives(h0, spoofed, h1, h1.address(4))
    with network.while_set(ipv4__conf__p0__rp_filter="1"):
        assert vanishes(h0, spoofed, h1, h1.address(4))
        assert arrives(h0, packet_from(h0, h1.address(4)), h1, h1.address(4))
        assert network.names_supported("rp_filter")
    assert arrives(h0, spoofed, h1, h1.address(4))


def an_interface_does_not_forward_when_forwarding_is_off(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(4))
    with network.while_set(ipv4__conf__p0__forwarding="0"):
        assert vanishes(h0, packet_from(h0, h1.address(4)), h1, h1.address(4))
        assert arrives(h1, packet_from(h1, h0.address(4)), h0, h0.address(4))
        assert reaches(network, "10.0.1.1")
    assert arrives(h0, packet_from(h0, h1.address(4)), h1, h1.address(4))


def nothing_is_forwarded_where_linux_is_no_router(network: Network, family: int) -> None:
    wait_reached(network, network["h1"].address(family))
    key = "ipv4__conf__all__forwarding" if family == 4 else "ipv6__conf__all__forwarding"
    with network.while_set(**{key: "0"}):
        assert misses(network, network["h1"].address(family))
        assert reaches(network, address_of(family, 0, 1))
    wait_reached(network, network["h1"].address(family))
