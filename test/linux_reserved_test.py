"""Destinations that the RFCs reserve, under default routes; the router is the kernel, then dl3d."""

import time
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

import pytest
from harness.network import Host, Network
from harness.probes import MOMENT_S, PATIENCE_S, arrives, carries, listening, packet_from, wait_reached

FORWARDED = (
    *("0.0.0.1", "0.255.255.255", "169.254.0.1", "169.254.255.255", "240.0.0.1", "255.255.255.254", "100.64.0.1"),
    *("::", "::2", "::10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::1", "100::1", "2001::1", "2002:a00:1::1"),
    *("3fff::1", "5f00::1", "fc00::1", "fec0::1"),
)
STOPPED = (
    *(str(IPv4Address(0)), "127.0.0.1", "127.255.255.255", "224.0.0.5", "239.255.255.255", "255.255.255.255"),
    *("::1", "fe80::1234", "fe90::1", "febf::1"),
    *("ff00::1", "ff01::1", "ff02::1234", "ff05::1234", "ff08::1234", "ff0e::1234"),
)
N_TIMES = 100  # more than Linux gets in one burst of a class


@pytest.fixture(autouse=True)
def _defaults(network: Network) -> Iterator[None]:
    """All packets have a route to h1, which has answered. They end there and at h2 without a reply."""
    sinks = network["h1"], network["h2"]
    for sink in sinks:
        for family in (4, 6):
            wait_reached(network, sink.address(family))
            sink.ip(f"-{family}", "route", "replace", "blackhole", "default")
    network.ip(*(f"route replace default via {network['h1'].address(family)} dev p1" for family in (4, 6)))
    yield
    for sink in sinks:
        network.settle_in(sink)


def _arriving(network: Network, targets: Sequence[str], sink: Host, within_s: float) -> set[str]:
    """Those of the targets for which a packet comes out at `sink`; returns early if all do."""
    missing = set(targets)
    with listening(sink) as out, listening(network["h0"]) as into:
        for target in targets:
            into.send(packet_from(network["h0"], target))
        deadline = time.monotonic() + within_s
        while missing and (left := deadline - time.monotonic()) > 0:
            got = out.receive(left)
            missing -= {target for target in missing if got and carries(got, target)}
    return set(targets) - missing


def reserved_addresses_are_routed(network: Network) -> None:
    with network.through_workers(len(FORWARDED)):
        assert _arriving(network, FORWARDED, network["h1"], PATIENCE_S) == set(FORWARDED)


def other_addresses_are_not(network: Network) -> None:
    assert _arriving(network, STOPPED, network["h1"], MOMENT_S) == set()


def none_of_many_packets_at_once_is_missing(network: Network) -> None:
    """They do not share the limit of a class of packets for Linux."""
    targets = [f"240.0.{i}.1" for i in range(N_TIMES)]
    with network.through_workers(N_TIMES):
        assert _arriving(network, targets, network["h1"], PATIENCE_S) == set(targets)


@pytest.mark.parametrize(
    ("prefix", "target"),
    [("0.0.0.0/8", "0.1.2.3"), ("169.254.0.0/16", "169.254.1.2"), ("240.0.0.0/4", "250.1.2.3"), ("::/127", "::")],
)
def routes_to_reserved_networks_are_followed(network: Network, prefix: str, target: str) -> None:
    h0, h1, h2 = (network[name] for name in ("h0", "h1", "h2"))
    via = h2.address(6 if ":" in prefix else 4)
    network.ip(f"route add {prefix} via {via} dev p2")
    with network.through_workers(1):
        assert arrives(h0, packet_from(h0, target), h2, target)
    network.ip(f"route del {prefix} via {via} dev p2")
    with network.through_workers(1):
        assert arrives(h0, packet_from(h0, target), h1, target)
