"""Cases in which the kernel changes its state without notification; the router is the kernel, then dl3d.

Each test makes a change that netlink reports partly or not at all, and checks the router from its hosts.
"""

import socket
import struct
import time

import pytest
from harness.network import BENCHMARK, FAMILIES, Host, Network
from harness.network import network as address_of
from harness.probes import MOMENT_S, arrives, carries, listening, packet_from, vanishes, wait_reached
from harness.router import router_mac
from harness.shell import batch, ping
from harness.wire import wait_until

MRT_INIT, MRT_ADD_VIF, MRT_ADD_MFC = 200, 202, 204
VIF = struct.Struct("=HBBI4s4s")
MFC = struct.Struct("=4s4sH32s2xIIIi")
TARGET = {4: "198.18.0.1", 6: "2001:db8:f8::1"}
# The restriction of a route, and packets that do not match it.
NARROW = {4: "tos 0x10", 6: "from 2001:db8:a0::/64"}
WITHIN, BEYOND = {4: {"tos": 0x10}, 6: {}}, {4: {}, 6: {"src": "2001:db8:a3::77"}}


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


def _way(network: Network, family: int, name: str) -> str:
    return f"via {network[name].address(family)} dev p{network[name].link}"


def _goes_to(network: Network, family: int, name: str) -> bool:
    """A packet for TARGET is sent to this host."""
    frame = packet_from(network["h0"], TARGET[family])
    return arrives(network["h0"], frame, network[name], TARGET[family])


def _goes_nowhere(network: Network, family: int) -> bool:
    """No host receives a packet for TARGET."""
    frame = packet_from(network["h0"], TARGET[family])
    with listening(network["h1"]) as one, listening(network["h2"]) as other, listening(network["h0"]) as source:
        source.send(frame)
        time.sleep(MOMENT_S)
        return not any(carries(got, TARGET[family]) for got in one.drain() + other.drain())


# --- IPv4 routes that the kernel removes silently.


def routes_of_a_link_that_goes_down_are_gone(network: Network, family: int) -> None:
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h1')}")
    assert _goes_to(network, family, "h1")
    network.ip("link set p1 down")
    network.ip("link set p1 up", "address replace 2001:db8:a1::1/64 dev p1")
    wait_reached(network, network["h1"].address(family))
    assert _goes_nowhere(network, family)


def routes_of_a_link_that_goes_down_leave_room_for_worse_ones(network: Network, family: int) -> None:
    network.ip(
        f"route add {BENCHMARK[family]} {_way(network, family, 'h1')} metric 10",
        f"route add {BENCHMARK[family]} {_way(network, family, 'h2')} metric 20",
    )
    assert _goes_to(network, family, "h1")
    network.ip("link set p1 down")
    assert _goes_to(network, family, "h2")
    network.ip("link set p1 up")
    assert _goes_to(network, family, "h2")


def routes_with_a_source_address_go_with_it(network: Network, family: int) -> None:
    source = address_of(family, 66, 6)
    bits = 32 if family == 4 else 128
    network.ip(f"address add {source}/{bits} dev p2" + (" nodad" if family == 6 else ""))
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h1')} src {source}")
    assert _goes_to(network, family, "h1")
    network.ip(f"address del {source}/{bits} dev p2")
    # IPv6 keeps the route and drops the source address.
    assert _goes_to(network, family, "h1") if family == 6 else _goes_nowhere(network, family)


def routes_via_a_network_go_with_its_address(network: Network) -> None:
    network.ip(f"route add {BENCHMARK[4]} via 10.0.1.2")
    assert _goes_to(network, 4, "h1")
    network.ip("address del 10.0.1.1/24 dev p1")
    network.ip("address add 10.0.1.1/24 dev p1")
    wait_reached(network, "10.0.1.2")
    assert _goes_nowhere(network, 4)
    assert not network.the_router.namespace.ip("route", "show", BENCHMARK[4])


def routes_of_a_deleted_next_hop_are_gone(network: Network, family: int) -> None:
    network.ip(f"nexthop add id 1 {_way(network, family, 'h1')}", f"route add {BENCHMARK[family]} nhid 1")
    assert _goes_to(network, family, "h1")
    network.ip("nexthop del id 1")
    network.ip(f"nexthop add id 1 {_way(network, family, 'h1')}")
    assert _goes_nowhere(network, family)


def routes_of_next_hops_on_a_link_that_goes_down_are_gone(network: Network, family: int) -> None:
    network.ip(f"nexthop add id 1 {_way(network, family, 'h1')}", f"route add {BENCHMARK[family]} nhid 1")
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h2')} metric 2000")
    assert _goes_to(network, family, "h1")
    network.ip("link set p1 down")
    assert _goes_to(network, family, "h2")


def routes_of_a_deleted_interface_are_gone(network: Network, family: int) -> None:
    network.ip("link add gone0 up type veth peer name gone1")
    network.ip("link set gone1 up", f"route add {BENCHMARK[family]} dev gone0 metric 10")
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h1')} metric 20")
    assert _goes_nowhere(network, family)
    network.ip("link del gone0")
    assert _goes_to(network, family, "h1")


def a_group_shrinks_with_a_link_that_goes_down(network: Network, family: int) -> None:
    hops = " ".join(f"nexthop {_way(network, family, name)}" for name in ("h1", "h2"))
    network.ip(f"route add {BENCHMARK[family]} {hops}")
    network.ip("link set p1 down")
    for port in range(8):
        frame = packet_from(network["h0"], f"{TARGET[family][:-1]}{port + 1}")
        assert arrives(network["h0"], frame, network["h2"], f"{TARGET[family][:-1]}{port + 1}")


# --- The order of routes to the same prefix.


def the_lowest_metric_wins_whenever_it_comes(network: Network, family: int) -> None:
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h1')} metric 20")
    network.ip(f"route add {BENCHMARK[family]} {_way(network, family, 'h2')} metric 10")
    assert _goes_to(network, family, "h2")
    network.ip(f"route del {BENCHMARK[family]} metric 10")
    assert _goes_to(network, family, "h1")
    network.ip(f"route prepend {BENCHMARK[family]} {_way(network, family, 'h2')} metric 20")
    if family == 4:
        assert _goes_to(network, family, "h2")
    network.ip(f"route del {BENCHMARK[family]} {_way(network, family, 'h2')} metric 20")
    assert _goes_to(network, family, "h1")


def _add_then_append(network: Network, family: int) -> None:
    network.ip(
        f"route add {BENCHMARK[family]} {_way(network, family, 'h1')}",
        f"route append {BENCHMARK[family]} {_way(network, family, 'h2')}",
    )


def an_appended_route_of_ip4_waits_for_its_turn(network: Network) -> None:
    _add_then_append(network, 4)
    assert _goes_to(network, 4, "h1")
    network.ip(f"route del {BENCHMARK[4]} {_way(network, 4, 'h1')}")
    assert _goes_to(network, 4, "h2")


def routes_of_ip4_that_differ_in_a_metric_of_tcp_are_two(network: Network) -> None:
    way = _way(network, 4, "h1")
    network.ip(f"route add {BENCHMARK[4]} {way} advmss 1400", f"route append {BENCHMARK[4]} {way} advmss 1300")
    network.ip(f"route del {BENCHMARK[4]} {way} advmss 1400")
    assert _goes_to(network, 4, "h1")
    network.ip(f"route del {BENCHMARK[4]} {way} advmss 1300")
    assert _goes_nowhere(network, 4)


def a_replaced_route_replaces_the_first_of_its_metric(network: Network) -> None:
    _add_then_append(network, 4)
    network.ip(f"route replace {BENCHMARK[4]} {_way(network, 4, 'n2')}")
    assert _goes_to(network, 4, "n2")
    network.ip(f"route del {BENCHMARK[4]} {_way(network, 4, 'n2')}")
    assert _goes_to(network, 4, "h2")


def ways_of_ip6_are_added_and_taken_one_by_one(network: Network) -> None:
    _add_then_append(network, 6)
    network.ip(f"route del {BENCHMARK[6]} {_way(network, 6, 'h1')}")
    assert _goes_to(network, 6, "h2")
    network.ip(f"route append {BENCHMARK[6]} {_way(network, 6, 'h1')}")
    network.ip(f"route del {BENCHMARK[6]} {_way(network, 6, 'h2')}")
    assert _goes_to(network, 6, "h1")


# --- Neighbours.


def a_neighbour_that_moves_is_followed(network: Network, family: int) -> None:
    address = address_of(family, 3, 77)
    bits = 32 if family == 4 else 128
    for name in ("n2", "n3", "n2"):
        with _owning_on_link(network[name], f"{address}/{bits}"):
            batch(network.the_router.namespace, ["neighbour flush all"], family=f"-{family}")
            network.the_router.settle()
            wait_reached(network, address)
            frame = packet_from(network["h0"], address)
            assert arrives(network["h0"], frame, network[name], address)


class _owning_on_link:  # noqa: N801 # reads as a method
    """A host with a further address on its device for the duration of a block."""

    def __init__(self, host: Host, prefix: str) -> None:
        self._host, self._prefix = host, prefix

    def __enter__(self) -> None:
        self._host.ip("address", "add", self._prefix, "dev", self._host.device)

    def __exit__(self, *_: object) -> None:
        self._host.ip("address", "del", self._prefix, "dev", self._host.device)


def a_permanent_neighbour_of_the_operator_counts_and_stays(network: Network, family: int) -> None:
    wrong = "02:00:00:00:99:99"
    target = network["h1"].address(family)
    network.ip(f"neighbour replace {target} lladdr {wrong} dev p1 nud permanent")
    frame = packet_from(network["h0"], target)
    with listening(network["h1"]) as out, listening(network["h0"]) as source:
        source.send(frame)
        wait_until(lambda: any(got.hex().startswith("020000009999") for got in out.drain()), "it left for that MAC")
    assert "PERMANENT" in network.the_router.namespace.ip(f"-{family}", "neighbour", "show", target)
    network.ip(f"neighbour del {target} dev p1")
    wait_reached(network, target)


def a_quiet_neighbour_is_not_forgotten(network: Network) -> None:
    network.ip(*(f"route add {BENCHMARK[family]} via {network['h1'].address(family)}" for family in FAMILIES))
    names = ("base_reachable_time_ms", "gc_stale_time", "delay_first_probe_time")
    keys = [f"ipv{family}__neigh__p1__{name}" for family in FAMILIES for name in names]
    with network.while_set(**dict(zip(keys, ("500", "1", "1") * 2, strict=True))):
        for family in FAMILIES:
            wait_reached(network, network["h1"].address(family))
        for _ in range(2):
            time.sleep(1.5)
            for family in FAMILIES:
                assert _goes_to(network, family, "h1")


# --- Packets that workers must leave to Linux.


def link_local_packets_stay_on_their_link(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(6))
    assert vanishes(h0, packet_from(h0, h1.address(6), src="fe80::ff:fe01:2"), h1, h1.address(6))
    assert vanishes(h0, packet_from(h0, "fe80::ff:fe01:102"), h1, "fe80::ff:fe01:102")


def packets_to_all_hosts_are_not_forwarded(network: Network, family: int) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(family))
    frame = packet_from(h0, h1.address(family))
    assert vanishes(h0, b"\xff" * 6 + frame[6:], h1, h1.address(family))
    group = "239.1.1.1" if family == 4 else "ff0e::101"
    assert vanishes(h0, packet_from(h0, group), h1, group)


def a_directed_broadcast_goes_as_linux_decides(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    frame = packet_from(h0, "10.0.1.255")
    assert vanishes(h0, frame, h1, "10.0.1.255")
    with network.while_set(ipv4__conf__all__bc_forwarding="1", ipv4__conf__p0__bc_forwarding="1"):
        assert arrives(h0, frame, h1, "10.0.1.255")


def frames_for_others_are_not_taken(network: Network, family: int) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(family))
    frame = packet_from(h0, h1.address(family))
    assert vanishes(h0, bytes.fromhex("020000000099") + frame[6:], h1, h1.address(family))


def hop_by_hop_options_are_left_to_linux(network: Network) -> None:
    h0, h1 = network["h0"], network["h1"]
    wait_reached(network, h1.address(6))
    frame = packet_from(h0, h1.address(6))
    header, rest = bytearray(frame[:54]), frame[54:]
    options = bytes([header[20], 0, 1, 4, 0, 0, 0, 0])  # PadN
    header[18:20] = (len(rest) + len(options)).to_bytes(2, "big")
    header[20] = 0
    assert arrives(h0, bytes(header) + options + rest, h1, h1.address(6))


# --- Features of Linux that workers lack.


def a_route_for_one_tos_or_source_is_left_to_linux(network: Network, family: int) -> None:
    host, target = network["h0"], TARGET[family]
    meant, other = (packet_from(host, target, **fields[family]) for fields in (WITHIN, BEYOND))
    network.ip(f"route add {BENCHMARK[family]} {NARROW[family]} {_way(network, family, 'h2')}")
    assert arrives(host, meant, network["h2"], target)
    assert vanishes(host, other, network["h2"], target)


def a_bridge_on_a_port_gets_its_frames(network: Network, family: int) -> None:
    h2 = network["h2"].address(family)
    wait_reached(network, h2)
    address = address_of(family, 2, 1)
    bits = 24 if family == 4 else 64
    lines = [f"link add br0 address {router_mac(2)} up type bridge", "link set p2 master br0"]
    network.ip(*lines, f"address del {address}/{bits} dev p2", f"address add {address}/{bits} dev br0")
    try:
        wait_reached(network, h2)
        assert ping(network["h2"].namespace, network["h0"].address(family)).received == 2
        assert network.names_unsupported("p2")
    finally:
        network.ip("link del br0")


def multicast_is_forwarded_where_linux_forwards_it(network: Network) -> None:
    group, h0, h1 = "239.1.2.3", network["h0"], network["h1"]
    frame = packet_from(h0, group)
    frame = bytes.fromhex("01005e010203") + frame[6:]
    assert vanishes(h0, frame, h1, group)
    with network.the_router.namespace.entered():
        daemon = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
    with daemon:
        daemon.setsockopt(socket.IPPROTO_IP, MRT_INIT, 1)
        for vif, local in enumerate(("10.0.0.1", "10.0.1.1")):
            daemon.setsockopt(socket.IPPROTO_IP, MRT_ADD_VIF, VIF.pack(vif, 0, 1, 0, socket.inet_aton(local), bytes(4)))
        ways = bytes([0, 1]) + bytes(30)  # out of vif 1 from a TTL of 1 on
        entry = MFC.pack(socket.inet_aton(h0.address(4)), socket.inet_aton(group), 0, ways, 0, 0, 0, 0)
        daemon.setsockopt(socket.IPPROTO_IP, MRT_ADD_MFC, entry)
        network.the_router.settle()
        assert arrives(h0, frame, h1, group)
        assert network.names_unsupported("multicast")
