"""A VNI whose packets are routed in a VRF (an L3 VNI), as zebra writes it: the router is the kernel, then dl3d. In a guest.

See harness/vteps.py for the picture: br0 and p2 are in VRF red; the packets around those of the VNI are in the main table.
"""

from collections.abc import Iterator

import pytest
from harness.network import FAMILIES, length, network
from harness.router import port_name
from harness.shell import batch, ping
from harness.tcp import carry
from harness.vteps import REMOTE, Kind, Vteps
from harness.wire import wait_until

DEVICE = "net_pcap{index},iface={name}"  # see tagged.py
FAR = {4: "10.9.0.2", 6: "2001:db8:a9::2"}  # the peer, beyond its own router
MANY, TCP_BYTES = 5, 300_000
KINDS = [Kind(router, family, True) for router in ("kernel", "dl3d") for family in FAMILIES]


def _gateway(bed: Vteps, family: int) -> str:
    """The remote end as a next hop: an IPv4 one of IPv6 routes as zebra writes it."""
    remote = REMOTE[bed.kind.family]
    return f"::ffff:{remote}" if family == 6 and bed.kind.family == 4 else remote


def _prefix(family: int) -> str:
    return f"{network(family, 9, 0)}/{length(family)}"


def _addresses() -> list[str]:
    """Of IPv6 Linux takes them away when an interface changes its VRF."""
    places = ((2, port_name(2)), (5, "br0"))
    return [
        f"address replace {network(one, link, 1)}/{length(one)} dev {name}" for link, name in places for one in FAMILIES
    ]


def _families(bed: Vteps) -> list[int]:
    """Over IPv6, remote ends are no next hops of IPv4 routes with a neighbour of IPv4; zebra has both."""
    return [4, 6] if bed.kind.family == 4 else [6]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def bed(request: pytest.FixtureRequest) -> Iterator[Vteps]:
    with Vteps(request.param, DEVICE) as made:
        _enter_vrf(made)
        yield made
        made.router.check()


def _enter_vrf(bed: Vteps) -> None:
    lines = ["link add red type vrf table 1001", "link set red up", "link set br0 master red"]
    lines += [f"link set {port_name(2)} master red", *_addresses()]
    for family in _families(bed):
        gateway = _gateway(bed, family)
        lines.append(f"neighbour replace {gateway} lladdr {bed.peer.mac} dev br0 nud noarp extern_learn")
        lines.append(f"route add {_prefix(family)} via {gateway} dev br0 onlink vrf red")
        lines.append(f"route add blackhole {_prefix(family)}")  # in the main table
        batch(bed.peer.namespace, [f"address add {FAR[family]}/{32 if family == 4 else 128} dev lo"])
    batch(bed.router.namespace, lines)
    fdb = (bed.peer.mac, "dev", "vxlan10", "dst", REMOTE[bed.kind.family], "self", "master", "extern_learn")
    bed.router.namespace.run("bridge", "fdb", "replace", *fdb)
    bed.router.settle()


def _reaches(bed: Vteps, family: int) -> bool:
    return bool(ping(bed.out.namespace, FAR[family], "-W", "2", count=1).received)


def packets_are_routed_in_the_vrf_of_the_vni(bed: Vteps) -> None:
    for family in _families(bed):
        wait_until(lambda: _reaches(bed, family), f"they met by IPv{family}")  # noqa: B023
        with bed.counted(workers=2 * MANY):
            assert ping(bed.out.namespace, FAR[family], count=MANY).received == MANY
        carry(bed.out.namespace, bed.peer.namespace, FAR[family], TCP_BYTES)


def hosts_of_the_vni_are_reached_in_its_vrf(bed: Vteps) -> None:
    for family in FAMILIES:
        bed.meet(bed.out, bed.peer, family)
        bed.meet(bed.out, bed.h0, family)
        with bed.counted(workers=4 * MANY):
            for host in (bed.peer, bed.h0):
                assert ping(bed.out.namespace, host.address(family), count=MANY).received == MANY


def a_route_that_the_vrf_loses_is_not_looked_for_in_another_one(bed: Vteps) -> None:
    for family in _families(bed):
        words = f"{_prefix(family)} via {_gateway(bed, family)} dev br0 onlink vrf red"
        batch(bed.router.namespace, [f"route del {words}", f"route add unreachable {_prefix(family)} vrf red"])
        bed.router.settle()
        assert not _reaches(bed, family)
        batch(bed.router.namespace, [f"route del unreachable {_prefix(family)} vrf red", f"route add {words}"])
        bed.router.settle()
        wait_until(lambda: _reaches(bed, family), f"they met again by IPv{family}")  # noqa: B023


def what_leaves_the_vrf_is_not_routed_in_it(bed: Vteps) -> None:
    batch(bed.router.namespace, ["link set br0 nomaster", *_addresses()])
    bed.router.settle()
    assert not ping(bed.out.namespace, bed.peer.address(4), "-W", "2", count=1).received
    batch(bed.router.namespace, ["link set br0 master red", *_addresses()])
    bed.router.settle()
    bed.meet(bed.out, bed.peer, 4)
