"""Next-hop groups: flows are distributed by weight, and each flow keeps its next hop."""

from collections.abc import Callable, Iterator

import pytest
from harness.frames import IP, TCP, UDP, Ether, IPv6, Packet, Raw, on
from harness.wired import Port, WiredForwarder, host_mac

N_FLOWS = 300
HOPS4 = "nexthop via 10.0.2.2 dev b weight 2 nexthop via 10.0.3.2 dev c weight 1"
HOPS6 = "nexthop via 2001:db8:2::2 dev b weight 2 nexthop via 2001:db8:3::2 dev c weight 1"


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    neighbours = [f"10.0.{i + 1}.2 lladdr {host_mac(i)} dev {name}" for i, name in ((1, "b"), (2, "c"))]
    neighbours += [f"2001:db8:{i + 1}::2 lladdr {host_mac(i)} dev {name}" for i, name in ((1, "b"), (2, "c"))]
    routes = [f"10.2.0.0/16 {HOPS4}", f"2001:db8:22::/48 {HOPS6}"]
    with WiredForwarder([Port("a"), Port("b"), Port("c")], routes=routes, neighbours=neighbours) as made:
        yield made


def _udp4(flow: int) -> Packet:
    return IP(src="10.0.1.2", dst="10.2.0.1") / UDP(sport=1024 + flow, dport=53) / Raw(flow.to_bytes(4, "big"))


def _tcp6(flow: int) -> Packet:
    return IPv6(src="2001:db8:1::2", dst="2001:db8:22::1") / TCP(sport=1024 + flow) / Raw(flow.to_bytes(4, "big"))


def _addresses4(flow: int) -> Packet:
    source = f"10.9.{flow // 256}.{flow % 256}"
    return IP(src=source, dst="10.2.0.1", proto=253) / Raw(flow.to_bytes(4, "big"))


def _ways(wired: WiredForwarder, make: Callable[[int], Packet]) -> dict[int, str]:
    """The port of each flow."""
    before = wired.account()
    for flow in range(N_FLOWS):
        wired.wires["a"].send(on(0, make(flow)))
    assert wired.settle(before.received + N_FLOWS).since(before).drops == {}
    ways = {}
    for name in "bc":
        for frame in wired.wires[name].drain():
            ways[int.from_bytes(bytes(Ether(frame)[Raw])[:4], "big")] = name
    assert len(ways) == N_FLOWS
    return ways


@pytest.mark.parametrize("make", [_udp4, _tcp6, _addresses4])
def flows_are_shared_by_weight_and_keep_their_way(wired: WiredForwarder, make: Callable[[int], Packet]) -> None:
    ways = _ways(wired, make)
    share = list(ways.values()).count("b") / N_FLOWS
    assert 0.58 < share < 0.75, "two thirds of the flows go to the next hop of weight 2"
    assert _ways(wired, make) == ways
    wired.dl3d.call("reload")
    assert _ways(wired, make) == ways


def a_batch_can_make_a_group_and_take_it_away(wired: WiredForwarder) -> None:
    def change(op: str, route: str) -> None:
        wired.dl3d.call("routes.change", changes=[{"op": op, "route": route}])

    change("replace", "10.2.0.0/16 via 10.0.3.2 dev c")
    assert set(_ways(wired, _udp4).values()) == {"c"}
    change("replace", f"10.2.0.0/16 {HOPS4}")
    assert set(_ways(wired, _udp4).values()) == {"b", "c"}
