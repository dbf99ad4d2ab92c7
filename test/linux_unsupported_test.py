"""What workers do not support is listed exactly while it exists, with the handling of its packets."""

import contextlib
import ctypes
import os
import platform
import shlex
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from harness.wire import wait_until
from harness.wired import DL3D, Port, config_text

from dl3.lab.forwarder import Forwarder

PORTS = [
    Port("left", device="net_ring0", keys={"mac": "02:00:00:00:00:01"}),
    Port("right", device="net_ring1", keys={"mac": "02:00:00:00:00:02"}),
]
MOMENT_S = 0.2
BPF = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE, SCHED_CLS = 5, 28, 3
TCX = {"ingress": 46, "egress": 47}
GET_INFO, INFO_BYTES = 64, 84  # IPT_SO_GET_INFO, struct ipt_getinfo; the same for IPv6
CHAIN = "'add table {0} f; add chain {0} f onward {{ type filter hook {1} priority 0; }}'"
POLICY = "src 10.0.0.0/8 dst 11.0.0.0/8 dir out"
SHAPER = "tbf rate 1mbit burst 10k latency 10ms"
TEMPLATE = "tmpl src 192.0.2.1 dst 192.0.2.2 proto esp mode tunnel"

# Name of the row: the command, its reversal, the reported name, the reported place.
THINGS = {
    "bridge": ("ip link add name br0 type bridge", "ip link delete br0", None, ""),
    "bridge port": (
        "ip link add name br0 type bridge\nip link set left master br0",
        "ip link set left nomaster\nip link delete br0",
        "port of a bridge left to Linux",
        "left in br0",
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
    "default policy": (
        "ip xfrm policy setdefault fwd block",
        "ip xfrm policy setdefault fwd accept",
        "xfrm policy",
        "default of fwd or out is block",
    ),
    "default policy for the host": (
        "ip xfrm policy setdefault in block",
        "ip xfrm policy setdefault in accept",
        None,
        "",
    ),
    "clsact": ("tc qdisc add dev left clsact", "tc qdisc delete dev left clsact", None, ""),
    "filter": (
        "tc qdisc add dev left clsact\n"
        "tc filter add dev left ingress pref 7 protocol ip u32 match u8 64 0xff at 8 flowid 1:1",
        "tc qdisc delete dev left clsact",
        "filter u32 pref 7 handle 0x80000800",
        "dev left ingress",
    ),
    "shaper": (
        f"tc qdisc add dev left root handle 5: {SHAPER}",
        "tc qdisc delete dev left root",
        "qdisc tbf 5:",
        "left",
    ),
    "queues below queues": (
        "tc qdisc add dev left root handle 1: htb\n"
        "tc class add dev left parent 1: classid 1:1 htb rate 1mbit\n"
        f"tc qdisc add dev left parent 1:1 handle 10: {SHAPER}",
        "tc qdisc delete dev left root",
        "qdisc htb 1:",
        "left",
    ),
    "plain queue": ("tc qdisc add dev left root pfifo", "tc qdisc delete dev left root", None, ""),
    "rp_filter": ("sysctl net.ipv4.conf.left.rp_filter=1", "sysctl net.ipv4.conf.left.rp_filter=0", None, ""),
    "use_neigh": (
        "sysctl net.ipv4.fib_multipath_use_neigh=1",
        "sysctl net.ipv4.fib_multipath_use_neigh=0",
        "next-hop selection by neighbour state",
        "net.ipv4.fib_multipath_use_neigh = 1",
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
        "interface below one of an unsupported type",
        "left",
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
        dl3d.taps.run(*shlex.split(command))


def _n_messages(dl3d: Forwarder) -> int:
    messages: int = dl3d.call("mirror")["messages"]
    return messages


@pytest.mark.parametrize("thing", THINGS)
def names_what_workers_leave_to_linux(dl3d: Forwarder, thing: str) -> None:
    done, undone, what, where = THINGS[thing]
    wait_until(lambda: not _named(dl3d), "nothing is named before")
    before = _n_messages(dl3d)
    _run(dl3d, done)
    try:
        if what is None:
            wait_until(lambda: _n_messages(dl3d) > before, "the mirror has heard of it")
            time.sleep(MOMENT_S)
            assert not _named(dl3d)
        else:
            wait_until(lambda: what in _named(dl3d), f"{what} is named")
            assert where in _named(dl3d)[what]
    finally:
        _run(dl3d, undone)
    wait_until(lambda: not _named(dl3d), "nothing is named afterwards")


def _bpf(command: int, attributes: bytes) -> int:
    """The system call; returns a descriptor of the created object."""
    libc = ctypes.CDLL(None, use_errno=True)
    made: int = libc.syscall(BPF[platform.machine()], command, ctypes.create_string_buffer(attributes, 128), 128)
    assert made >= 0, os.strerror(ctypes.get_errno())
    return made


@contextlib.contextmanager
def _program_by_tcx(dl3d: Forwarder, tap: str, side: int) -> Iterator[None]:
    """Attaches a program that passes all packets to a TAP interface."""
    text = struct.pack("<BBhiBBhi", 0xB7, 0, 0, -1, 0x95, 0, 0, 0)  # r0 = TCX_NEXT; exit
    program, licence = ctypes.create_string_buffer(text), ctypes.create_string_buffer(b"GPL")
    loaded = _bpf(PROG_LOAD, struct.pack("=IIQQ", SCHED_CLS, 2, ctypes.addressof(program), ctypes.addressof(licence)))
    with dl3d.taps.entered():
        link = _bpf(LINK_CREATE, struct.pack("=IIII", loaded, socket.if_nametoindex(tap), side, 0))
    try:
        yield
    finally:
        os.close(link)
        os.close(loaded)


@pytest.mark.parametrize("side", list(TCX))
def names_programs_that_hang_by_tcx(dl3d: Forwarder, side: str) -> None:
    wait_until(lambda: not _named(dl3d), "nothing is named before")
    with _program_by_tcx(dl3d, "left", TCX[side]):
        wait_until(lambda: _named(dl3d) == {f"tc {side} on an interface": "left"}, "it is named")
    wait_until(lambda: not _named(dl3d), "nothing is named afterwards")


def _look_at_filter(family: int) -> None:
    """Like iptables-legacy -L: Linux creates the table, which stays."""
    inet, level = (socket.AF_INET, socket.IPPROTO_IP) if family == 4 else (socket.AF_INET6, socket.IPPROTO_IPV6)
    info, n = ctypes.create_string_buffer(b"filter", INFO_BYTES), ctypes.c_uint32(INFO_BYTES)
    with socket.socket(inet, socket.SOCK_RAW, socket.IPPROTO_RAW) as asker:
        assert ctypes.CDLL(None).getsockopt(asker.fileno(), level, GET_INFO, info, ctypes.byref(n)) == 0


@pytest.mark.parametrize("family", [4, 6])
def names_iptables_of_the_old_kind(family: int) -> None:
    with Forwarder(DL3D, config_text(PORTS, memory={"hugepages": "never"}), linux={}) as made:
        made.wait_ready()
        wait_until(lambda: made.call("mirror")["state"] == "following" and not _named(made), "nothing is named before")
        with made.taps.entered():
            _look_at_filter(family)
        wait_until(lambda: _named(made) == {"iptables-legacy": f"IPv{family}"}, "it is named")
