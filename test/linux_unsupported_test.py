"""What lanes cannot express is named while it is there, with what becomes of its packets, and not a moment longer."""

import shlex
import time
from collections.abc import Iterator

import pytest
from harness.house import DL3D, Port, config_text
from harness.wire import wait_until

from dl3.lab.forwarder import Forwarder

PORTS = [
    Port("left", device="net_ring0", keys={"mac": "02:00:00:00:00:01"}),
    Port("right", device="net_ring1", keys={"mac": "02:00:00:00:00:02"}),
]
MOMENT_S = 0.2
CHAIN = "'add table {0} f; add chain {0} f onward {{ type filter hook {1} priority 0; }}'"
POLICY = "src 10.0.0.0/8 dst 11.0.0.0/8 dir out"
TEMPLATE = "tmpl src 192.0.2.1 dst 192.0.2.2 proto esp mode tunnel"

# Name of the row: what is done, what undoes it, what it is called, where it is.
THINGS = {
    "bridge": ("ip link add name br0 type bridge", "ip link delete br0", None, ""),
    "bridge port": (
        "ip link add name br0 type bridge\nip link set left master br0",
        "ip link set left nomaster\nip link delete br0",
        "interface in a bridge, bond or the like",
        "left",
    ),
    "rule": (
        "ip rule add from 10.0.0.0/8 table 5 priority 77",
        "ip rule delete priority 77",
        "policy rule",
        "IPv4, priority 77, table 5",
    ),
    "forward hook": (
        "nft " + CHAIN.format("inet", "forward"),
        "nft delete table inet f",
        "nftables hook",
        "table inet f chain onward",
    ),
    "input hook": ("nft " + CHAIN.format("inet", "input"), "nft delete table inet f", None, ""),
    "ingress hook": (
        "nft " + CHAIN.format("netdev", "ingress device left"),
        "nft delete table netdev f",
        "nftables hook",
        "table netdev f chain onward",
    ),
    "policy": (
        f"ip xfrm policy add {POLICY} {TEMPLATE}",
        f"ip xfrm policy delete {POLICY}",
        "xfrm policy",
        "policy out",
    ),
    "clsact": (
        "tc qdisc add dev left clsact",
        "tc qdisc delete dev left clsact",
        "tc ingress on an interface",
        "left",
    ),
    "shaper": (
        "tc qdisc add dev left root tbf rate 1mbit burst 10k latency 10ms",
        "tc qdisc delete dev left root",
        "tc egress on an interface",
        "left",
    ),
    "plain queue": ("tc qdisc add dev left root pfifo", "tc qdisc delete dev left root", None, ""),
    "rp_filter": (
        "sysctl net.ipv4.conf.left.rp_filter=1",
        "sysctl net.ipv4.conf.left.rp_filter=0",
        "rp_filter on an interface",
        "left",
    ),
    "forwarding": (
        "sysctl net.ipv4.conf.left.forwarding=0",
        "sysctl net.ipv4.conf.left.forwarding=1",
        "IPv4 forwarding is off on an interface",
        "left",
    ),
    "disabled IPv6": (
        "sysctl net.ipv6.conf.left.disable_ipv6=1",
        "sysctl net.ipv6.conf.left.disable_ipv6=0",
        "IPv6 is disabled on an interface",
        "left",
    ),
    "macvlan": (
        "ip link add name mv0 link left type macvlan mode bridge\nip link set mv0 up",
        "ip link delete mv0",
        None,
        "",
    ),
    "macvlan that takes all": (
        "ip link add name mv0 link left type macvlan mode passthru\nip link set mv0 up",
        "ip link delete mv0",
        "interface under one of a kind that lanes do not know",
        "left",
    ),
    "MTU": (
        "ip link set right mtu 9000",
        "ip link set right mtu 1500",
        "MTU that the port refuses",
        "right",
    ),
}


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    with Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"}), linux={}) as made:
        made.wait_ready()
        wait_until(lambda: made.call("mirror")["state"] == "following", "the mirror follows")
        yield made


def _named(dl3d: Forwarder) -> dict[str, str]:
    return {row["what"]: row["where"] for row in dl3d.call("unsupported")["unsupported"]}


def _run(dl3d: Forwarder, commands: str) -> None:
    for command in commands.splitlines():
        dl3d.twins.run(*shlex.split(command))


def _heard(dl3d: Forwarder) -> int:
    messages: int = dl3d.call("mirror")["messages"]
    return messages


@pytest.mark.parametrize("thing", THINGS)
def names_what_lanes_leave_to_linux(dl3d: Forwarder, thing: str) -> None:
    done, undone, what, where = THINGS[thing]
    wait_until(lambda: not _named(dl3d), "nothing is named before")
    before = _heard(dl3d)
    _run(dl3d, done)
    try:
        if what is None:
            wait_until(lambda: _heard(dl3d) > before, "the mirror has heard of it")
            time.sleep(MOMENT_S)
            assert not _named(dl3d)
        else:
            wait_until(lambda: what in _named(dl3d), f"{what} is named")
            assert where in _named(dl3d)[what]
    finally:
        _run(dl3d, undone)
    wait_until(lambda: not _named(dl3d), "nothing is named afterwards")
