"""Linux hosts around a router: everything that works with the kernel as router works with dl3d."""

import re

import pytest
from harness.network import FAMILIES, SMALL_MTU, Host, Network, router_address
from harness.network import network as address_of
from harness.shell import ask, ping
from harness.streams import transfer


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


def hosts_reach_each_other(network: Network, family: int) -> None:
    for source, target in (("h0", "h1"), ("h1", "h2"), ("h2", "n3"), ("n3", "far"), ("far", "h0")):
        pings = ping(network[source].namespace, network[target].address(family))
        assert pings.received == pings.sent, f"{source} to {target}: {pings.text}"


def workers_forward_what_needs_no_linux(network: Network, family: int) -> None:
    for source, target in (("h0", "h1"), ("h2", "n3"), ("n3", "far")):
        ping(network[source].namespace, network[target].address(family))
        with network.through_workers(20):
            assert ping(network[source].namespace, network[target].address(family), count=10).received == 10


def hosts_reach_all_addresses_of_the_router(network: Network, family: int) -> None:
    for link in range(4):
        pings = ping(network["h0"].namespace, address_of(family, link, 1))
        assert pings.received == pings.sent, pings.text


def the_router_reaches_hosts(network: Network, family: int) -> None:
    for host in network.hosts.values():
        pings = ping(network.the_router.namespace, host.address(family))
        assert pings.received == pings.sent, pings.text


def the_first_packet_between_strangers_arrives(network: Network, family: int) -> None:
    for target in ("h1", "n2", "far"):
        network.forget()
        pings = ping(network["h0"].namespace, network[target].address(family), count=1)
        assert pings.received == 1, f"to {target}: {pings.text}"


def a_long_packet_crosses(network: Network, family: int) -> None:
    data = 1500 - 28 if family == 4 else 1500 - 48
    pings = ping(network["h0"].namespace, network["h1"].address(family), "-M", "do", "-s", str(data))
    assert pings.received == pings.sent, pings.text


@pytest.mark.parametrize("probe", [(), ("-I",)], ids=["udp", "icmp"])
def traceroute_shows_every_hop(network: Network, family: int, probe: tuple[str, ...]) -> None:
    target = network["far"].address(family)
    text = ask(network["h0"].namespace, "traceroute", f"-{family}", "-n", "-m", "5", *probe, target)
    hops = [re.findall(r"[0-9a-f.:]+[.:][0-9a-f.:]+", line)[0] for line in text.splitlines()[1:] if "*" not in line[:6]]
    assert hops == [address_of(family, 0, 1), network["h1"].address(family), target], text


def the_mtu_of_a_path_is_found(network: Network, family: int) -> None:
    network.forget()
    with network.shrunk(1, "h1"):
        text = ask(network["h0"].namespace, "tracepath", f"-{family}", "-n", "-m", "5", network["far"].address(family))
    assert f"pmtu {SMALL_MTU}" in text
    assert "reached" in text


def tcp_finds_its_way_through_a_smaller_mtu(network: Network, family: int) -> None:
    network.forget()
    with network.shrunk(1, "h1"):
        for source, target in (("h0", "far"), ("far", "h0")):
            assert transfer(network[source], network[target], family, 300_000) == 300_000
    assert f"mtu {SMALL_MTU}" in network["h0"].ip("route", "get", network["far"].address(family))


def packets_that_may_be_fragmented_are(network: Network) -> None:
    network.forget()
    with network.shrunk(1, "h1"):
        pings = ping(network["h0"].namespace, network["h1"].address(4), "-M", "dont", "-s", "1400")
        assert pings.received == pings.sent, pings.text


def fragments_are_forwarded(network: Network, family: int) -> None:
    pings = ping(network["h0"].namespace, network["h1"].address(family), "-M", "dont", "-s", "4000")
    assert pings.received == pings.sent, pings.text


def fragments_for_the_router_are_put_together(network: Network, family: int) -> None:
    pings = ping(network["h0"].namespace, address_of(family, 0, 1), "-M", "dont", "-s", "4000")
    assert pings.received == pings.sent, pings.text


SAYS = {
    4: {"unreachable": "Host Unreachable", "prohibit": "Packet filtered", "none": "Net Unreachable"},
    6: {"unreachable": "No route", "prohibit": "Administratively prohibited", "none": "No route"},
}
# Linux rate-limits such errors per host, so each case uses another host.
ASKS = {"none": "h1", "unreachable": "h2", "prohibit": "n2", "blackhole": "n3"}


@pytest.mark.parametrize("kind", list(ASKS))
def the_sender_gets_the_reason(network: Network, family: int, kind: str) -> None:
    host, target = network[ASKS[kind]], address_of(family, 77, 1)
    if kind != "none":
        network.ip(f"route add {kind} {target}")
    pings = ping(host.namespace, target, "-W", "0.2" if kind == "blackhole" else "10")
    reported = [line for line in pings.text.splitlines() if line.startswith("From")]
    assert pings.received == 0
    assert len(reported) == (0 if kind == "blackhole" else pings.sent), pings.text
    for line in reported:
        assert SAYS[family][kind] in line
        assert address_of(family, host.link, 1) in line


def a_neighbour_that_does_not_answer_is_unreachable(network: Network, family: int) -> None:
    with network.while_set(**{f"ipv{family}__neigh__p1__mcast_solicit": "1"}):
        pings = ping(network["h0"].namespace, address_of(family, 1, 99), "-W", "10", count=1)
    assert "Host Unreachable" in pings.text or "Address unreachable" in pings.text
    assert address_of(family, 0, 1) in pings.text


def options_of_ip4_are_handled(network: Network) -> None:
    pings = ping(network["h0"].namespace, network["h1"].address(4), "-R")
    assert pings.received == pings.sent
    assert re.search(r"RR:\s+10.0.0.2\s+10.0.1.1\s+10.0.1.2\s+10.0.1.2\s+10.0.0.1\s+10.0.0.2", pings.text), pings.text


@pytest.mark.parametrize("group", ["224.0.0.1", "ff02::1", "10.0.0.255"])
def the_router_answers_a_ping_to_all(network: Network, group: str) -> None:
    options = ("-b",) if group == "10.0.0.255" else ()
    text = ask(network["h0"].namespace, "ping", "-n", "-c", "2", "-i", "0.3", "-I", "eth0", *options, group)
    router = router_address(6, 0) if ":" in group else "10.0.0.1"
    assert f"from {router}" in text


def the_router_has_its_link_local_address(network: Network) -> None:
    pings = ping(network["h0"].namespace, f"{router_address(6, 0)}%eth0")
    assert pings.received == pings.sent, pings.text


def the_anycast_address_of_a_network_answers(network: Network) -> None:
    pings = ping(network["h0"].namespace, address_of(6, 1, 0))
    assert pings.received == pings.sent, pings.text


def a_better_route_is_reported(network: Network, family: int) -> None:
    network.forget()
    sender, other = network["n2"], network["n3"]
    target = address_of(family, 8, 9)
    via = other.address(family) if family == 4 else "fe80::ff:fe01:303"
    with other.owning(target):
        network.ip(f"route add {target} via {via} dev p3")
        pings = ping(sender.namespace, target, count=30)
        assert pings.received == 30, pings.text
        assert f"via {via}" in sender.ip("route", "get", target)


def tcp_to_the_router_itself_has_sound_checksums(network: Network, family: int) -> None:
    router = Host("router", network.the_router.namespace, 0, 1, "p0")
    assert transfer(network["h0"], router, family, 2_000_000) == 2_000_000
    assert transfer(router, network["far"], family, 2_000_000) == 2_000_000


def proxy_arp_answers_for_others(network: Network) -> None:
    host = network["h0"]
    with network.while_set(ipv4__conf__p0__proxy_arp="1"):
        host.ip("route", "add", network["h1"].address(4), "dev", "eth0")
        try:
            pings = ping(host.namespace, network["h1"].address(4))
            assert pings.received == pings.sent, pings.text
        finally:
            host.ip("route", "del", network["h1"].address(4), "dev", "eth0")
