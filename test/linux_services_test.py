"""Functions of Linux besides forwarding, and TCP across changes; the router is the kernel, then dl3d."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.network import FAMILIES, Network
from harness.network import network as address_of
from harness.probes import arrives, misses, packet_from, vanishes, wait_reached
from harness.shell import ask, batch, ping, running
from harness.streams import socket_in
from harness.wire import wait_until

VRRP_MAC = {4: "00:00:5e:00:01:0a", 6: "00:00:5e:00:02:0a"}
DNSMASQ = ("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--port=0", "--pid-file=")


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


def a_broadcast_reaches_a_program_on_the_router(network: Network) -> None:
    router = network.the_router.namespace
    with (
        socket_in(router, 4, socket.SOCK_DGRAM) as server,
        socket_in(network["h0"].namespace, 4, socket.SOCK_DGRAM) as client,
    ):
        server.bind(("0.0.0.0", 5005))  # noqa: S104 # of a namespace
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        for target in ("10.0.0.255", "255.255.255.255"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
            client.sendto(target.encode(), (target, 5005))
            assert server.recvfrom(100)[0] == target.encode()
            server.sendto(b"answer", ("10.0.0.2", client.getsockname()[1]))
            assert client.recvfrom(100)[0] == b"answer"


def a_multicast_group_reaches_a_program_on_the_router(network: Network) -> None:
    group = "239.1.2.3"
    with socket_in(network.the_router.namespace, 4, socket.SOCK_DGRAM) as server:
        server.bind((group, 5006))
        membership = socket.inet_aton(group) + socket.inet_aton("10.0.0.1")
        server.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        with socket_in(network["h0"].namespace, 4, socket.SOCK_DGRAM) as client:
            client.sendto(b"to all", (group, 5006))
        assert server.recvfrom(100)[0] == b"to all"


def dhcp_is_relayed(network: Network, tmp_path: Path) -> None:
    server, client = network["h1"].namespace, network["h0"].namespace
    leases = (
        f"--dhcp-leasefile={tmp_path / 'leases'}",
        "--dhcp-range=10.0.0.100,10.0.0.150,255.255.255.0,1h",
        "--no-ping",
    )
    relay = (f"--dhcp-relay=10.0.0.1,{network['h1'].address(4)}", f"--dhcp-leasefile={tmp_path / 'none'}")
    client.ip("address", "flush", "dev", "eth0", "scope", "global")
    try:
        with running(server, *DNSMASQ, *leases), running(network.the_router.namespace, *DNSMASQ, *relay):
            text = ask(client, "udhcpc", "-i", "eth0", "-f", "-n", "-q", "-s", "/bin/true", "-t", "60", "-T", "1")
    finally:
        network.settle_in(network["h0"])
    assert "lease of 10.0.0.1" in text, text


@pytest.fixture
def vrrp(network: Network, family: int) -> Iterator[str]:
    """An address as configured by keepalived: on a macvlan on p0 with the MAC address of the protocol."""
    address = address_of(family, 0, 254)
    with network.while_set(ipv4__conf__all__arp_ignore="1", ipv4__conf__all__arp_announce="2"):
        network.ip(
            f"link add vrrp0 link p0 address {VRRP_MAC[family]} type macvlan mode private",
            "link set vrrp0 up",
            f"address add {address}/{32 if family == 4 else 128} dev vrrp0",
        )
        yield address
        batch(network.the_router.namespace, ["link del vrrp0"], may_fail=True)


def a_virtual_address_of_vrrp_answers(network: Network, family: int, vrrp: str) -> None:
    wait_reached(network, vrrp)
    assert VRRP_MAC[family] in network["h0"].ip(f"-{family}", "neighbour", "show", vrrp)


def a_virtual_router_of_vrrp_forwards(network: Network, family: int, vrrp: str) -> None:
    target = network["h1"].address(family)
    wait_reached(network, vrrp)
    wait_reached(network, target)
    host = network["h0"]
    host.ip("route", "add", target, "via", vrrp, "dev", "eth0")
    try:
        assert ping(host.namespace, target, count=10).received == 10
    finally:
        host.ip("route", "del", target, "via", vrrp, "dev", "eth0")
    frame = bytes.fromhex(VRRP_MAC[family].replace(":", "")) + packet_from(host, target)[6:]
    assert arrives(host, frame, network["h1"], target)
    network.ip("link del vrrp0")
    assert vanishes(host, frame, network["h1"], target)
    assert misses(network, vrrp)


def _changes(target: str, bits: int) -> list[list[str]]:
    """Next hops to far that come and go while TCP runs, all of them valid."""
    inet6 = "inet6 " if bits == 32 else ""
    via = "10.0.1.2" if bits == 32 else "2001:db8:a1::2"
    return [
        [f"route add {target}/{bits} via {via} dev p1 metric 5"],
        [f"route replace {target}/{bits} via {inet6}fe80::ff:fe01:102 dev p1 metric 5"],
        [f"nexthop add id 5 via {via} dev p1", f"route append {target}/{bits} nhid 5 metric 4"],
        [f"route del {target}/{bits} metric 5"],
        ["nexthop del id 5"],
    ]


@pytest.mark.timing  # some bytes must arrive in each second
def tcp_goes_on_while_routes_change(network: Network, family: int, is_long: bool) -> None:
    seconds = 60 if is_long else 1
    target = network["far"].address(family)
    words = ("iperf3", "-c", target, "-t", str(seconds), "-J", "--connect-timeout", "5000")
    changes = _changes(target, 32 if family == 4 else 128)
    n_changes = 0
    with running(network["far"].namespace, "iperf3", "-s"):
        wait_until(lambda: ":5201" in network["far"].namespace.run("ss", "-ltn"), "iperf3 listened")
        client = subprocess.Popen(network["h0"].namespace.command(*words), stdout=subprocess.PIPE, text=True)
        while client.poll() is None:
            batch(network.the_router.namespace, changes[n_changes % len(changes)])
            n_changes += 1
            time.sleep(0.05)
        assert client.stdout
        report = json.loads(client.stdout.read())
    assert "error" not in report, report["error"]
    assert n_changes > 5 * seconds
    silent = [interval["sum"] for interval in report["intervals"] if interval["sum"]["bytes"] == 0]
    assert silent == []
