"""Checks of workers against Linux: what is no difference, and what Linux changes without a notification.

The router is the kernel, then dl3d; network.ip() returns once verify finds no difference. Sysctls of Linux that change
what it announces: ipv4.nexthop_compat_mode and ipv6.route.skip_notify_on_dev_down are tested here;
fib_notify_on_flag_change (both families) needs a driver that offloads routes, and is tested with synthetic messages.
"""

import errno
import platform
import struct
import sys
from collections.abc import Iterator

import pytest
from harness.netlink_buffers import unread_socket
from harness.network import FAMILIES, Network
from harness.probes import arrives, packet_from, wait_reached
from harness.shell import batch
from harness.stall import stalled
from harness.wire import wait_until
from harness.wired import DL3D, Port, config_text

from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

TARGET = {4: "10.8.0.9", 6: "2001:db8:8::9"}
BEHIND = {4: "10.8.0.0/24", 6: "2001:db8:8::/64"}
N_ROUTES = 100  # more than the router has
GROUP = 100
# Sends a request for the new next-hop object in argv[1], and prints Linux's error.
SEND = """
import socket, struct, sys
body = bytes.fromhex(sys.argv[1])
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0))
s.send(struct.pack("IHHII", 16 + len(body), 104, 0x505, 1, 0) + body)
print(struct.unpack_from("i", s.recv(4096), 16)[0])
"""
SILENT = "ipv6__route__skip_notify_on_dev_down"


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _kernel() -> tuple[int, ...]:
    return tuple(int(number) for number in platform.release().split("-")[0].split(".")[:2])


def _group(network: Network, *weights: int) -> None:
    """Next-hop group GROUP of the objects 1, 2... with weights of 16 bits, which iproute2 6.1 cannot write."""
    members = b"".join(struct.pack("IBBH", i + 1, (w - 1) & 255, (w - 1) >> 8, 0) for i, w in enumerate(weights))
    body = bytes((0, 0, 3, 0)) + bytes(4) + _attribute(1, struct.pack("I", GROUP)) + _attribute(2, members)
    error = int(network.the_router.namespace.run(sys.executable, "-c", SEND, body.hex()))
    if error == -errno.EINVAL and _kernel() < (6, 12):
        pytest.skip("weights of 16 bits came with Linux 6.12")
    assert error == 0


def _mirror(network: Network) -> dict[str, int]:
    return (
        {key: int(value) for key, value in network.dl3d.call("mirror").items() if isinstance(value, int)}
        if network.dl3d
        else {}
    )


def _settled_drift(network: Network) -> tuple[int, int]:
    """Differences found by the audit after a further round over all routes, and those that outlasted a dump."""
    before = _mirror(network)
    if not before:
        return 0, 0
    wait_until(lambda: _mirror(network)["audited"] >= before["audited"] + 3 * N_ROUTES, "the audit went round")
    after = _mirror(network)
    return after["drifted"] - before["drifted"], after["drift_lasting"]


def _objects(network: Network, family: int) -> list[str]:
    ways = [f"via {network[name].address(family)} dev p{network[name].link}" for name in ("h1", "h2")]
    return [f"nexthop add id {i + 1} {way}" for i, way in enumerate(ways)]


@pytest.fixture(params=FAMILIES, ids=["v4", "v6"])
def family(request: pytest.FixtureRequest) -> int:
    """IPv4, then IPv6."""
    version: int = request.param
    return version


@pytest.mark.parametrize("compat", ["1", "0"], ids=["copies", "objects"])
def groups_with_weights_above_256_are_no_difference(network: Network, family: int, compat: str) -> None:
    with network.while_set(ipv4__nexthop_compat_mode=compat):
        network.ip(*_objects(network, family))
        _group(network, 1000, 3000)
        network.ip(f"route add {BEHIND[family]} nhid {GROUP}")
        before = _mirror(network)
        assert _settled_drift(network) == (0, 0)
        assert not before or _mirror(network)["dumps"] == before["dumps"]


def one_prefix_in_two_tables_is_no_difference(network: Network, family: int) -> None:
    """Linux and workers use table main."""
    one, other = (network[name].address(family) for name in ("h1", "h2"))
    network.ip(
        f"route add {BEHIND[family]} via {other} table default", f"route add {BEHIND[family]} via {one} metric 4000"
    )
    assert _settled_drift(network) == (0, 0)
    network.ip(f"route del {BEHIND[family]} via {other} table default")


def objects_change_without_notices_of_their_routes(network: Network, family: int) -> None:
    frame = packet_from(network["h0"], TARGET[family])
    one, other = (network[name] for name in ("h1", "h2"))
    for host in (one, other):
        wait_reached(network, host.address(family))
    with network.while_set(ipv4__nexthop_compat_mode="0"):
        network.ip(*_objects(network, family), "nexthop add id 10 group 1", f"route add {BEHIND[family]} nhid 10")
        assert arrives(network["h0"], frame, one, TARGET[family])
        network.ip("nexthop replace id 10 group 2")
        assert arrives(network["h0"], frame, other, TARGET[family])
        network.ip(f"nexthop replace id 2 via {one.address(family)} dev p{one.link}")
        assert arrives(network["h0"], frame, one, TARGET[family])
        network.ip("nexthop del id 10")
        assert _settled_drift(network) == (0, 0)


CHANGES = {
    "down": ("p1", "link set p1 down", "link set p1 up"),
    "small": ("p1", "link set p1 mtu 1200", "link set p1 mtu 1500"),
    "deleted": ("other", "link del other", ""),
}


@pytest.mark.parametrize("change", list(CHANGES))
def ipv6_routes_go_without_notices(network: Network, change: str) -> None:
    """Those of the router's own addresses included."""
    port, do, undo = CHANGES[change]
    if port == "other":
        network.ip("link add other type bridge", "link set other up")
    way = f"via {network['h2'].address(6)} dev p2"
    with network.while_set(**{SILENT: "1"}):
        network.ip(
            f"address add 2001:db8:c::1/64 dev {port} nodad",
            f"route add {BEHIND[6]} nexthop via 2001:db8:c::2 dev {port} nexthop {way}",
            f"route add 2001:db8:9:9::/64 via 2001:db8:c::2 dev {port}",
        )
        network.ip(do)
        assert _settled_drift(network) == (0, 0)
    if undo:
        network.ip(undo)


def ipv6_routes_go_without_notices_when_it_is_disabled(network: Network) -> None:
    with network.while_set(**{SILENT: "1"}):
        network.ip("address add 2001:db8:c::1/64 dev p1 nodad", "route add 2001:db8:9:9::/64 via 2001:db8:c::2 dev p1")
        with network.while_set(ipv6__conf__p1__disable_ipv6="1"):
            assert _settled_drift(network) == (0, 0)


PORTS = [Port("left", device="net_ring0", keys={"mac": "02:00:00:00:00:01"})]


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    """With Linux as control plane and one port."""
    with Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"}), linux={}) as made:
        made.wait_ready()
        yield made


STALE = {
    "local4": ("10.0.5.1", "address add 10.0.5.1/24 dev left", "address del 10.0.5.1/24 dev left"),
    "local6": ("2001:db8:5::1", "address add 2001:db8:5::1/64 dev left nodad", "address del 2001:db8:5::1/64 dev left"),
    "foreign4": ("10.50.0.1", "route add 10.50.0.0/16 dev other", "route del 10.50.0.0/16 dev other"),
    "foreign6": ("2001:db8:50::1", "route add 2001:db8:50::/48 dev other", "route del 2001:db8:50::/48 dev other"),
}


def _is_level(dl3d: Forwarder) -> bool:
    """Whether workers have all that Linux has; while tables change, nobody can tell."""
    try:
        return bool(dl3d.call("verify")["listed"] == [])
    except Fault:
        return False


@pytest.mark.parametrize("kind", list(STALE))
def the_audit_finds_routes_that_linux_has_not(dl3d: Forwarder, kind: str) -> None:
    """Packets to them would go to Linux: at the rate of another class, or instead of being forwarded."""
    taps, pid = dl3d.taps, dl3d.process.pid
    addr, add, delete = STALE[kind]
    batch(taps, ["link add other type bridge", "link set other up"], may_fail=True)
    batch(taps, [add])
    wait_until(lambda: dl3d.call("route", address=addr)["found"], "workers have the route")
    wait_until(lambda: _is_level(dl3d), "workers have all routes")
    before = dl3d.call("mirror")["drifted"]
    with stalled(pid), unread_socket(pid):
        batch(taps, [delete])
    wait_until(lambda: dl3d.call("mirror")["drifted"] > before, "the audit has found it")
    wait_until(lambda: not dl3d.call("route", address=addr)["found"], "all was read again")
    wait_until(lambda: dl3d.call("mirror")["drift_lasting"] == 0, "nothing is left")
