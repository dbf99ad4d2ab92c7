"""Several next hops for one route: shares by weight, flows keep their next hop; the router is the kernel, then dl3d."""

from collections.abc import Sequence

import pytest
from harness.flows import EACH_ONCE, TARGETS, Book, flow_frame, hop_words, send_flows, spread
from harness.frames import IP, Ether, IPv6, Raw
from harness.network import BENCHMARK, FAMILIES, Network
from harness.probes import carries, listening, wait_reached
from harness.wire import Wire, wait_until
from scapy.layers.inet6 import IPv6ExtHdrFragment

NEIGHBOURS = ("n2", "n3", "n4", "n5")
ACROSS_PORTS = ("h1", "h2", "n2", "n3")
EVEN = (1, 1, 1, 1)
WEIGHTS = (1, 2, 3, 10)
FEW, MANY = 3_000, 100_000
TOLERANCE = {FEW: 0.06, MANY: 0.02}  # more than six standard deviations: Linux draws a secret at its start


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


@pytest.fixture
def n_flows(is_long: bool) -> int:
    """The number of flows counted."""
    return MANY if is_long else FEW


def _spread_by_objects(network: Network, family: int, names: Sequence[str], weights: Sequence[int], kind: str) -> None:
    for name in names:
        wait_reached(network, network[name].address(family))
    members = "/".join(f"{i},{weight}" for i, weight in enumerate(weights, 1))
    network.ip(
        *(f"nexthop add id {i} {hop_words(network, family, name)}" for i, name in enumerate(names, 1)),
        f"nexthop add id 10 group {members} type {kind}",
        f"route add {BENCHMARK[family]} nhid 10",
    )


def _assert_shares(book: Book, names: Sequence[str], weights: Sequence[int]) -> None:
    assert book.wanderers() == []
    shares = book.shares()
    for name, weight in zip(names, weights, strict=True):
        assert shares[name] == pytest.approx(weight / sum(weights), abs=TOLERANCE[len(book.ways)]), shares


@pytest.mark.parametrize(
    ("names", "weights"), [(NEIGHBOURS, WEIGHTS), (ACROSS_PORTS, EVEN)], ids=["neighbours", "ports"]
)
def flows_are_shared_by_weight(
    network: Network, family: int, names: Sequence[str], weights: Sequence[int], n_flows: int
) -> None:
    spread(network, family, names, weights)
    _assert_shares(send_flows(network, family, names, n_flows), names, weights)


def flows_are_shared_by_a_group_of_next_hops(network: Network, family: int, n_flows: int) -> None:
    _spread_by_objects(network, family, ACROSS_PORTS, WEIGHTS, "mpath")
    _assert_shares(send_flows(network, family, ACROSS_PORTS, n_flows), ACROSS_PORTS, WEIGHTS)


def a_resilient_group_keeps_flows_together(network: Network, family: int, n_flows: int) -> None:
    _spread_by_objects(network, family, NEIGHBOURS, EVEN, "resilient buckets 64 idle_timer 0")
    book = send_flows(network, family, NEIGHBOURS, n_flows)
    assert book.wanderers() == []
    assert set(book.shares()) == set(NEIGHBOURS)


def routes_elsewhere_move_no_flow(network: Network, family: int) -> None:
    spread(network, family, NEIGHBOURS, WEIGHTS)
    n_flows = 1000
    before = send_flows(network, family, NEIGHBOURS, n_flows, EACH_ONCE)
    other = "198.19.{}.0/24" if family == 4 else "2001:db8:f9:{}::/64"
    network.ip(*(f"route add {other.format(i)} {hop_words(network, family, 'h2')}" for i in range(50)))
    network.ip(f"nexthop add id 77 {hop_words(network, family, 'h2')}")
    after = send_flows(network, family, NEIGHBOURS, n_flows, EACH_ONCE)
    assert before == after


def a_weight_that_changes_counts(network: Network, family: int, n_flows: int) -> None:
    spread(network, family, NEIGHBOURS, EVEN)
    hops = [
        f"nexthop {hop_words(network, family, name)} weight {w}" for name, w in zip(NEIGHBOURS, WEIGHTS, strict=True)
    ]
    network.ip(f"route replace {BENCHMARK[family]} {' '.join(hops)}")
    _assert_shares(send_flows(network, family, NEIGHBOURS, n_flows), NEIGHBOURS, WEIGHTS)


def _fragments(frame: bytes) -> list[bytes]:
    """The packet as the first fragment, which has the ports, and the last one, which does not."""
    whole = Ether(frame)
    data = bytes(whole.payload.payload)
    pieces = []
    for more, offset, part in ((1, 0, data[:16]), (0, 2, data[16:])):
        packet = whole.copy()
        packet.payload.remove_payload()
        if IP in packet:
            packet[IP].flags, packet[IP].frag, packet[IP].len, packet[IP].chksum = more, offset, None, None
            packet[IP].proto = 17
            pieces.append(bytes(packet / Raw(part)))
        else:
            packet[IPv6].plen, packet[IPv6].nh = None, 44
            pieces.append(bytes(packet / IPv6ExtHdrFragment(nh=17, m=more, offset=offset, id=7) / Raw(part)))
    return pieces


def _n_out(wires: dict[str, Wire], target: str) -> dict[str, int]:
    return {name: sum(carries(frame, target) for frame in wire.drain()) for name, wire in wires.items()}


def all_fragments_go_the_same_way(network: Network, family: int) -> None:
    spread(network, family, NEIGHBOURS, EVEN)
    wires = {name: network[name].wire() for name in NEIGHBOURS}
    counted = dict.fromkeys(NEIGHBOURS, 0)
    with listening(network["h0"]) as source:
        for number in range(100):  # different ports each, the same addresses
            for frame in _fragments(flow_frame(network, family, number)):
                source.send(frame)

    def are_all_out() -> bool:
        for name, n in _n_out(wires, TARGETS[family]).items():
            counted[name] += n
        return sum(counted.values()) >= 200

    wait_until(are_all_out, "all fragments had come out")
    for wire in wires.values():
        wire.close()
    assert sorted(counted.values()) == [0, 0, 0, 200], counted
