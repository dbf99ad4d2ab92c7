"""Linux hosts behind the ports of a bridge and behind a routed port: all that works with the kernel works with dl3d."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.bridged import BRIDGE, BRIDGED, ROUTED, BridgedRouter, addresses
from harness.network import FAMILIES, Host, length, network
from harness.router import ROUTERS, port_name
from harness.shell import batch, ping
from harness.streams import transfer
from harness.wire import Wire, wait_until

from dl3.lab.namespace import End, Namespace

AWAY = 2  # x0 may move from p0 to this port, on which x2 is, too
MANY = 5
TCP_BYTES = 300_000
MOVES = 4


@dataclass
class Bed:
    """The router and its hosts. x0 is on a switch of its own, which is connected to p0 or to p2."""

    routed: BridgedRouter
    hosts: dict[str, Host]
    switch: Namespace

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def ip(self, *lines: str) -> None:
        """Configure the router."""
        self.routed.ip(*lines)

    def move(self, link: int) -> None:
        """Connect the switch of x0 to another port, without a word from x0."""
        other = AWAY if link != AWAY else 0
        batch(self.switch, [f"link set u{other} nomaster", f"link set u{link} master sw"])

    def is_behind(self, name: str, link: int) -> bool:
        """Whether workers, or the kernel alone, have a host behind a port."""
        return self.routed.knows(self[name].mac) == port_name(link)

    @contextlib.contextmanager
    def through_workers(self, n_packets: int) -> Iterator[None]:
        """In the block, dl3d's workers forward at least this many packets, as opposed to Linux on their behalf."""
        dl3d = self.routed.dl3d
        before = dl3d.closed_account() if dl3d else None
        yield
        if dl3d and before:
            since = dl3d.closed_account().since(before)
            assert since.sent - since.injected >= n_packets, since

    def meet(self, source: str, target: str, family: int) -> None:
        """They have reached each other."""
        pings = ping(self[source].namespace, self[target].address(family))
        assert pings.received == pings.sent, f"{source} to {target}: {pings.text}"


def _host(made: BridgedRouter, name: str, link: int, number: int) -> Host:
    return Host(name, made.lab.namespace(name), link, number)


def _settle_in(host: Host) -> None:
    lines = [f"link set {host.device} up"]
    for family in FAMILIES:
        lines.append(f"address replace {host.address(family)}/{length(family)} dev {host.device}")
        lines.append(f"route replace default via {network(family, host.link, 1)} dev {host.device}")
    batch(host.namespace, lines)


def _lay_switches(made: BridgedRouter, x0: Host, x2: Host) -> Namespace:
    """That of x0, and another one with x2 behind p2."""
    switch = made.lab.namespace("switch", silent=True)
    shared = made.lab.namespace("shared", silent=True)
    for one, name in ((switch, "sw"), (shared, "sh")):
        one.ip("link", "add", name, "up", "type", "bridge", "mcast_snooping", "0")
    made.lab.cable(End(switch, "host", "02:00:00:02:00:01"), x0.end)
    made.lab.cable(made.router.end(0), End(switch, "u0", "02:00:00:02:00:02"))
    made.lab.cable(End(shared, "x0", "02:00:00:02:00:03"), End(switch, f"u{AWAY}", "02:00:00:02:00:04"))
    made.lab.cable(made.router.end(AWAY), End(shared, "uplink", "02:00:00:02:00:05"))
    batch(switch, ["link set dev host master sw", "link set u0 master sw"])
    made.lab.cable(End(shared, "x2", "02:00:00:02:00:06"), x2.end)
    batch(shared, [f"link set dev {device} master sh" for device in ("x0", "x2", "uplink")])
    return switch


def _build(kind: str) -> Bed:
    made = BridgedRouter(kind)
    try:
        hosts = {f"x{link}": _host(made, f"x{link}", BRIDGE, 2 + link) for link in BRIDGED}
        hosts["out"] = _host(made, "out", ROUTED, 2)
        switch = _lay_switches(made, hosts["x0"], hosts["x2"])
        made.lab.cable(made.router.end(1), hosts["x1"].end)
        made.lab.cable(made.router.end(ROUTED), hosts["out"].end)
        for host in hosts.values():
            _settle_in(host)
        made.start()
    except BaseException:
        made.close()
        raise
    return Bed(made, hosts, switch)


@pytest.fixture(scope="module", params=ROUTERS)
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    made = _build(request.param)
    yield made
    made.routed.close()


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


def hosts_behind_the_bridge_reach_others_through_workers(bed: Bed, family: int) -> None:
    for source, target in (("x0", "out"), ("out", "x1"), ("x1", "x2")):
        bed.meet(source, target, family)
        with bed.through_workers(2 * MANY):
            assert ping(bed[source].namespace, bed[target].address(family), count=MANY).received == MANY
        assert transfer(bed[source], bed[target], family, TCP_BYTES) == TCP_BYTES


def the_router_answers_and_reports_errors(bed: Bed, family: int) -> None:
    for name in ("x0", "out"):
        pings = ping(bed[name].namespace, network(family, BRIDGE, 1))
        assert pings.received == pings.sent, pings.text
    for source, target, link in (("x0", "out", BRIDGE), ("out", "x1", ROUTED)):
        text = ping(bed[source].namespace, bed[target].address(family), "-t", "1", count=1).text
        assert f"From {network(family, link, 1)}" in text, text
    bed.ip("link set br0 mtu 1300")
    packet = ("-M", "do", "-s", "1400", "-W", "2")
    assert "1300" in ping(bed["out"].namespace, bed["x1"].address(family), *packet, count=1).text
    bed.ip("link set br0 mtu 1500")
    for host in bed.hosts.values():
        host.ip(f"-{family}", "route", "flush", "cache")


def _speak(bed: Bed, family: int) -> None:
    """x0 speaks where it is now, as it may be silent while its peer waits; wait until it is known there."""
    at = AWAY if "master sw" in bed.switch.ip("link", "show", f"u{AWAY}") else 0
    wait_until(lambda: bool(ping(bed["x0"].namespace, network(family, BRIDGE, 1), count=1).received), "x0 spoke")
    wait_until(lambda: bed.is_behind("x0", at), f"x0 was behind port {at}")


def a_host_that_moves_keeps_its_connections(bed: Bed, family: int) -> None:
    bed.meet("out", "x0", family)
    done: list[int] = []
    sender = threading.Thread(target=lambda: done.append(transfer(bed["out"], bed["x0"], family, 20 * TCP_BYTES)))
    sender.start()
    for number in range(MOVES):
        bed.move(0 if number % 2 else AWAY)
        _speak(bed, family)
    sender.join()
    assert done == [20 * TCP_BYTES]


def nothing_goes_to_the_port_that_a_host_has_left(bed: Bed) -> None:
    bed.meet("out", "x0", 4)
    bed.move(AWAY)
    _speak(bed, 4)
    old = Wire(End(bed.switch, "u0", ""))
    try:
        assert ping(bed["out"].namespace, bed["x0"].address(4), count=MANY).received == MANY
        mac = bytes.fromhex(bed["x0"].mac.replace(":", ""))
        assert not [frame for frame in old.drain() if frame[:6] == mac]
    finally:
        old.close()
    bed.move(0)
    _speak(bed, 4)


def a_host_that_the_bridge_has_forgotten_is_reached_by_flooding(bed: Bed, family: int) -> None:
    bed.meet("out", "x1", family)
    bed.routed.router.namespace.ip("link", "set", "dev", "br0", "type", "bridge", "fdb_flush")
    if bed.routed.dl3d:
        wait_until(lambda: not bed.routed.knows(bed["x1"].mac), "workers had forgotten it")
    bed.meet("out", "x1", family)
    wait_until(lambda: bed.is_behind("x1", 1), "it was known again")
    with bed.through_workers(2 * MANY):
        assert ping(bed["out"].namespace, bed["x1"].address(family), count=MANY).received == MANY


@pytest.mark.long
def a_bridge_that_is_down_forwards_nothing(bed: Bed) -> None:
    bed.meet("out", "x1", 4)
    bed.ip("link set br0 down")
    for source, target in (("out", "x1"), ("x1", "out"), ("x0", "x1")):
        assert not ping(bed[source].namespace, bed[target].address(4), "-W", "0.3", count=1).received
    bed.ip("link set br0 up", *addresses())
    wait_until(bed.routed.is_served, "workers served it again")
    for family in FAMILIES:
        bed.meet("out", "x1", family)
        with bed.through_workers(2 * MANY):
            assert ping(bed["out"].namespace, bed["x1"].address(family), count=MANY).received == MANY


def isolated_ports_are_reached_by_routing_only(bed: Bed) -> None:
    for link in (0, 1):
        bed.routed.router.namespace.run("bridge", "link", "set", "dev", port_name(link), "isolated", "on")
    bed["x0"].ip("neighbour", "flush", "all")
    assert not ping(bed["x0"].namespace, bed["x1"].address(4), "-W", "0.3", count=1).received
    for source, target in (("x0", "out"), ("out", "x1")):
        bed.meet(source, target, 4)
        with bed.through_workers(2 * MANY):
            assert ping(bed[source].namespace, bed[target].address(4), count=MANY).received == MANY
    for link in (0, 1):
        bed.routed.router.namespace.run("bridge", "link", "set", "dev", port_name(link), "isolated", "off")


def the_way_to_a_host_is_shown(bed: Bed, family: int) -> None:
    dl3d = bed.routed.dl3d
    if not dl3d:
        return
    bed.meet("x1", "out", family)
    wait_until(lambda: bed.is_behind("x1", 1), "it was known")
    address = bed["x1"].address(family)
    shown = dl3d.call("route", address=address)
    assert [shown[key] for key in ("interface", "port", "mac", "source_mac", "verdict")] == [
        "br0",
        port_name(1),
        bed["x1"].mac,
        "02:00:00:00:05:01",
        "forward",
    ]
    (row,) = (one for one in dl3d.call("mirror")["interfaces"] if one["name"] == "br0")
    assert (row["port"], row["all_to_linux"]) == (None, False)
    bed.routed.router.namespace.ip("link", "set", "dev", "br0", "type", "bridge", "fdb_flush")
    wait_until(lambda: dl3d.call("route", address=address)["verdict"] == "bridge_unknown", "the bridge had no host")
    assert dl3d.call("route", address=address)["port"] is None
    assert not [one for one in dl3d.call("verify")["listed"] if "br0" in str(one)]
