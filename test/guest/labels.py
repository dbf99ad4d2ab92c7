"""MPLS, byte for byte as the kernel forwards it: push, swap, pop, both TTL modes. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      the same frames go in at h0, once to the kernel and once to dl3d's workers
"""

import contextlib
import json
import struct
from collections.abc import Iterator

import pytest
from harness.frames import ip4, ip6
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch
from harness.wire import Wire, wait_until

from dl3.lab.namespace import End, Lab

DEVICE = "net_pcap{index},iface={name}"
HOST_MAC = "02:00:00:01:{:02x}:02"
FAR4, FAR6 = "10.1.1.2", "2001:db8:1:1::2"
OUT4, OUT6 = f"via inet {FAR4}", f"via inet6 {FAR6}"
LABELS = [
    f"100 as 200 {OUT4}",
    f"101 as 301/302/303 {OUT4}",
    f"102 {OUT4}",
    f"103 ttl-propagate disabled {OUT4}",
    f"104 ttl-propagate enabled {OUT4}",
    "105 dev lo",
    "106 dev red",
    "107 ttl-propagate disabled dev lo",
    f"108 as 208 {OUT6}",
    f"109 as 0 {OUT4}",
    f"110 as 210 {OUT4} dev p1.11",
    f"111 nexthop as 211 {OUT4} nexthop as 211 {OUT6}",
]
ROUTES = [
    f"route add 10.60.0.0/16 encap mpls 401 via {FAR4}",
    f"route add 10.61.0.0/16 encap mpls 401/402/403 via {FAR4}",
    f"route add 10.62.0.0/16 encap mpls 404 ttl 17 via {FAR4}",
    f"route add 10.63.0.0/16 encap mpls 0 ttl 0 via {FAR4}",
    f"nexthop add id 9 encap mpls 405 via {FAR4} dev p1",
    "route add 10.64.0.0/16 nhid 9",
    f"route add 10.65.0.0/16 nexthop encap mpls 406 via {FAR4} dev p1 nexthop encap mpls 406 via 10.1.1.3 dev p1",
    f"route add 10.66.0.0/16 via {FAR4}",
    f"route add 2001:db8:60::/48 encap mpls 501/502 via {FAR6}",
    f"route add 2001:db8:66::/48 via {FAR6}",
    f"route add 10.66.0.0/16 via {FAR4} dev p1 onlink vrf red",
    f"route add 2001:db8:66::/48 via {FAR6} dev p1 onlink vrf red",
]
PUSHED = ("10.60.1.1", "10.61.1.1", "10.62.1.1", "10.63.1.1", "10.64.1.1", "10.65.1.1", "2001:db8:60::1")
POPPED = ("10.66.1.1", "2001:db8:66::1")


def label(number: int, ttl: int = 64, bottom: bool = True, traffic_class: int = 5) -> bytes:
    """A label on the wire (RFC 3032, 2.1)."""
    return struct.pack("!I", number << 12 | traffic_class << 9 | bottom << 8 | ttl)


def packet(destination: str, ttl: int = 50) -> bytes:
    """A packet from h0, without Ethernet header."""
    made = (
        ip6(destination, src="2001:db8:1::2", hlim=ttl)
        if ":" in destination
        else ip4(destination, src="10.1.0.2", ttl=ttl)
    )
    return bytes(made)


def frame(kind: int, payload: bytes) -> bytes:
    """What follows the destination of a frame from h0."""
    return bytes.fromhex(HOST_MAC.format(0).replace(":", "")) + struct.pack("!H", kind) + payload


def stacks() -> Iterator[bytes]:
    """Label stacks and what follows them."""
    for destination in POPPED:
        for number in (100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111):
            for ttl in (1, 2, 3, 255):
                yield label(number, ttl) + packet(destination)
            yield label(number, 9, bottom=False) + label(777, 7) + packet(destination)
            yield label(number, 64) + packet(destination, ttl=3)
        yield label(0 if "." in destination else 2, 30) + packet(destination)
        yield label(999) + packet(destination)  # not known
    yield label(100) + packet(POPPED[0])[:-7]
    yield label(102) + b"\x55" * 40  # neither IPv4 nor IPv6


def frames() -> list[bytes]:
    """All that goes in."""
    plain = [frame(0x86DD if ":" in to else 0x0800, packet(to, ttl)) for to in PUSHED for ttl in (2, 3, 64, 255)]
    return [*(frame(0x8847, stack) for stack in stacks()), *plain]


class Labelled:
    """Router and hosts; close() removes everything."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        hosts = [self.lab.namespace(f"h{side}", silent=True) for side in range(2)]
        ends = [End(host, "eth0", HOST_MAC.format(side)) for side, host in enumerate(hosts)]
        for side, end in enumerate(ends):
            self.lab.cable(self.router.end(side), end)
        self.router.start(2)
        self.wires = [Wire(end) for end in ends]
        ports = [port_name(side) for side in range(2)]
        links = json.loads(self.router.namespace.ip("-json", "link"))
        macs = {
            link["ifname"]: bytes.fromhex(link["address"].replace(":", "")) for link in links if link["ifname"] in ports
        }
        self.macs = [macs[port] for port in ports]
        self._configure()
        self.router.settle()

    def _configure(self) -> None:
        router = self.router.namespace
        router.run("modprobe", "-a", "mpls_router", "mpls_iptunnel")
        router.ip("link", "set", "lo", "up")
        batch(router, ["link add red type vrf table 1001", "link set red up"])
        batch(router, [f"link add link {port_name(1)} name p1.11 type vlan id 11", "link set p1.11 up"])
        self.set("platform_labels=1000", "conf.p0.input=1", "default_ttl=77")
        for side in range(2):
            device = port_name(side)
            batch(router, [f"address add 10.1.{side}.1/24 dev {device}"])
            batch(router, [f"address add 2001:db8:1:{side}::1/64 dev {device} nodad"])
        for device in ("p1", "p1.11"):
            for far in (FAR4, FAR6, "10.1.1.3"):
                batch(router, [f"neighbour replace {far} lladdr {HOST_MAC.format(1)} dev {device} nud permanent"])
        batch(router, ROUTES)
        batch(router, [f"route add {line}" for line in LABELS], "-M")

    def set(self, *settings: str) -> None:
        """Settings of MPLS."""
        self.router.namespace.run("sysctl", "-qw", *(f"net.mpls.{setting}" for setting in settings))

    def settle(self, ttl: str) -> None:
        """Wait until the labels have this mode of TTL, and workers all routes."""
        if isinstance(self.router, Dl3dRouter):
            router = self.router
            wait_until(lambda: _modes(router) == {ttl}, "the labels have followed")
        self.router.settle()

    def account(self) -> str:
        """Where packets went, for messages."""
        return str(self.router.account()) if isinstance(self.router, Dl3dRouter) else "in the kernel"

    def _send(self, rest: bytes) -> None:
        """Workers do not keep the order of frames with labels and others that they receive at once."""
        before = self._received()
        self.wires[0].send(self.macs[0] + rest)
        if isinstance(self.router, Dl3dRouter):
            wait_until(lambda: self._received() > before, f"{rest.hex()} has been received")

    def _received(self) -> int:
        return self.router.account().received if isinstance(self.router, Dl3dRouter) else 0

    def pass_through(self) -> list[bytes | None]:
        """For each frame, what leaves on the other side, without its source; None: nothing."""
        self.wires[1].drain()
        found: list[bytes | None] = []
        mark = frame(0x0800, packet("10.66.7.7"))
        for one in frames():
            self._send(one)
            self._send(mark)  # when it has come through, so has the one before
            got: list[bytes] = []
            while not got or b"\x0a\x42\x07\x07" not in got[-1]:
                left = self.wires[1].receive(60.0)
                assert left, f"the mark after {one.hex()} is lost: {self.account()}"
                if left[6:12] == self.macs[1]:
                    got.append(left[:6] + left[12:])
            assert len(got) <= 2, one.hex()
            found.append(got[0] if len(got) == 2 else None)
        return found

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        for wire in self.wires:
            wire.close()
        self.router.close()
        self.lab.close()


def _modes(router: Dl3dRouter) -> set[str]:
    """TTL modes of the labels whose routes have none of their own; labels that Linux keeps count as a mode."""
    listed = {one["label"]: one for one in router.call("labels")["labels"]}
    if not {0, 2, *range(100, 112)} <= set(listed):
        return {"incomplete"}
    if listed[103]["ttl"] != "pipe" or listed[104]["ttl"] != "uniform":
        return {"their own modes are lost"}
    return {
        one["ttl"] if one["does"] != "linux" else "linux"
        for number, one in listed.items()
        if number not in (103, 104, 107)
    }


@pytest.fixture(scope="module")
def kernel() -> Iterator[Labelled]:
    with contextlib.closing(Labelled("kernel")) as made:
        yield made


@pytest.fixture(scope="module")
def workers() -> Iterator[Labelled]:
    with contextlib.closing(Labelled("dl3d")) as made:
        yield made
        made.router.check()


@pytest.mark.parametrize(("propagate", "mode"), [(1, "uniform"), (0, "pipe")])
def workers_forward_labels_as_the_kernel_does(kernel: Labelled, workers: Labelled, propagate: int, mode: str) -> None:
    for router in (kernel, workers):
        router.set(f"ip_ttl_propagate={propagate}")
        router.settle(mode)
    assert isinstance(workers.router, Dl3dRouter)
    before = workers.router.closed_account()
    wanted, found = kernel.pass_through(), workers.pass_through()
    after = workers.router.closed_account()
    wrong = [
        f"in {one.hex()}\nkernel {a.hex() if a else None}\ndl3d   {b.hex() if b else None}"
        for one, a, b in zip(frames(), wanted, found, strict=True)
        if a != b
    ]
    assert not wrong, f"{len(wrong)} of {len(wanted)} differ:\n" + "\n".join(wrong[:12])
    assert sum(one is not None for one in wanted) > len(wanted) // 2
    by_workers = (after.sent - after.injected) - (before.sent - before.injected)
    left = sum(one is not None for one in wanted)
    assert by_workers >= left + len(frames()), f"{by_workers} of {left} and as many marks were sent by workers"


def what_linux_keeps_is_named(workers: Labelled) -> None:
    router = workers.router
    assert isinstance(router, Dl3dRouter)
    batch(router.namespace, [f"route add 500 as 16/17/18/19 {OUT4}"], "-M")
    wait_until(lambda: "MPLS labels" in str(router.call("unsupported")), "the label is named")
    batch(router.namespace, ["route del 500"], "-M")
    wait_until(lambda: "MPLS labels" not in str(router.call("unsupported")), "it is gone")
