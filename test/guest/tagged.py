"""VLANs (also QinQ), VRFs with overlapping prefixes, MPLS: the router is the kernel, then dl3d. Runs in a guest.

h0 -- p0 [ router ] p1 -- h1      both hosts speak untagged (10.N.0.0/24), and with each tag named below
"""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness.router import Dl3dRouter, KernelRouter, Router, port_name
from harness.shell import batch, ping
from harness.wire import Wire

from dl3.lab.namespace import End, Lab, Namespace

# Of the socket readers here, only libpcap restores a tag with its original EtherType.
DEVICE = "net_pcap{index},iface={name}"
VRFS = {"red": 1001, "blue": 1002}


@dataclass(frozen=True)
class Tags:
    """A VLAN, or a VLAN inside an 802.1ad VLAN."""

    inner: int
    outer: int = 0

    def add(self, namespace: Namespace, device: str) -> str:
        """Create the VLAN device on another device; returns its name."""
        if self.outer:
            lower = f"{device}.{self.outer}"
            if lower not in namespace.ip("-brief", "link"):
                namespace.ip(*f"link add link {device} name {lower} type vlan protocol 802.1ad id {self.outer}".split())
                namespace.ip("link", "set", lower, "up")
            device = lower
        namespace.ip(*f"link add link {device} name {device}.{self.inner} type vlan id {self.inner}".split())
        namespace.ip("link", "set", f"{device}.{self.inner}", "up")
        return f"{device}.{self.inner}"


# By number of the network: its VLANs on both cables, and its VRF.
NETWORKS = {5: Tags(5), 6: Tags(6), 7: Tags(7, outer=100), 8: Tags(8, outer=100)}
IN_VRFS = {"red": Tags(11), "blue": Tags(12, outer=200)}


def addresses(network: int, side: int, host: int) -> tuple[str, str]:
    """IPv4 and IPv6 addresses with prefix lengths."""
    return f"10.{network}.{side}.{host}/24", f"2001:db8:{network}:{side}::{host}/64"


class Tagged:
    """Router and hosts; close() removes everything."""

    def __init__(self, kind: str) -> None:
        self.lab = Lab()
        self.router: Router = Dl3dRouter(self.lab, DEVICE) if kind == "dl3d" else KernelRouter(self.lab)
        self.hosts = [self.lab.namespace(f"h{side}") for side in range(2)]
        self.members = {vrf: [self.lab.namespace(f"{vrf}{side}") for side in range(2)] for vrf in VRFS}
        for side, host in enumerate(self.hosts):
            self.lab.cable(self.router.end(side), End(host, "eth0", f"02:00:00:01:{side:02x}:02"))
        self.router.start(2)
        for side in range(2):
            self._configure(side)
        self.router.settle()

    def _configure(self, side: int) -> None:
        host, router = self.hosts[side], self.router.namespace
        devices = {1: ("eth0", port_name(side))}
        for number, tags in NETWORKS.items():
            devices[number] = tags.add(host, "eth0"), tags.add(router, port_name(side))
        for number, (theirs, ours) in devices.items():
            self._address(number, side, (host, theirs), (router, ours))
            for family, net in (("-4", f"10.{number}.0.0/16"), ("-6", f"2001:db8:{number}::/48")):
                via = addresses(number, side, 1)[family == "-6"].split("/")[0]
                host.ip(family, "route", "add", net, "via", via)
                others = (other for other in devices if other != number)
                for other in others:
                    far = (f"10.{other}.{1 - side}.0/24", f"2001:db8:{other}:{1 - side}::/64")[family == "-6"]
                    host.ip(family, "route", "replace", far, "via", via)
        for vrf, tags in IN_VRFS.items():
            self._configure_vrf(side, vrf, tags)

    def _configure_vrf(self, side: int, vrf: str, tags: Tags) -> None:
        """Both VRFs have the same networks; each host has its own namespace, which holds its VLAN device."""
        router, member = self.router.namespace, self.members[vrf][side]
        if not side:
            router.ip("link", "add", vrf, "type", "vrf", "table", str(VRFS[vrf]))
            router.ip("link", "set", vrf, "up")
        ours, theirs = tags.add(router, port_name(side)), tags.add(self.hosts[side], "eth0")
        router.ip("link", "set", ours, "master", vrf)
        self.hosts[side].ip("link", "set", theirs, "netns", member.name)
        member.ip("link", "set", theirs, "up")
        self._address(50, side, (member, theirs), (router, ours))
        member.ip("route", "add", "10.50.0.0/16", "via", f"10.50.{side}.1")
        member.ip("-6", "route", "add", "2001:db8:50::/48", "via", f"2001:db8:50:{side}::1")
        name = {"red": "203.0.113.1", "blue": "203.0.113.2"}[vrf]
        member.ip("address", "add", f"{name}/32", "dev", "lo")

    def _address(self, number: int, side: int, there: tuple[Namespace, str], here: tuple[Namespace, str]) -> None:
        for (namespace, device), host in ((there, 2), (here, 1)):
            for address in addresses(number, side, host):
                namespace.ip("address", "add", address, "dev", device)

    def close(self) -> None:
        """Stop the router, remove all namespaces."""
        self.router.close()
        self.lab.close()


@pytest.fixture(scope="module", params=["kernel", "dl3d"])
def tagged(request: pytest.FixtureRequest) -> Iterator[Tagged]:
    with contextlib.closing(Tagged(request.param)) as made:
        yield made
        made.router.check()


def _forwarded(router: Router) -> int:
    """Packets forwarded by workers; 0 with the kernel."""
    if not isinstance(router, Dl3dRouter):
        return 0
    account = router.closed_account()
    return account.sent - account.injected


def _cross(tagged: Tagged, source: Namespace, target: str) -> None:
    ping(source, target, "-W", "3", count=1)  # neighbours may have to be resolved first
    before = _forwarded(tagged.router)
    pings = ping(source, target, "-W", "3", "-i", "0.2", count=5)
    assert pings.received == pings.sent, pings.text
    if isinstance(tagged.router, Dl3dRouter):
        assert _forwarded(tagged.router) - before >= 10, "workers forward both ways, not Linux"


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("network", [1, *NETWORKS])
def hosts_reach_each_other_within_a_network(tagged: Tagged, network: int, family: int) -> None:
    _cross(tagged, tagged.hosts[0], addresses(network, 1, 2)[family == 6].split("/")[0])


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("vrf", VRFS)
def vrfs_with_the_same_prefixes_do_not_meet(tagged: Tagged, vrf: str, family: int) -> None:
    _cross(tagged, tagged.members[vrf][0], addresses(50, 1, 2)[family == 6].split("/")[0])
    other = next(name for name in VRFS if name != vrf)
    target = {"red": "203.0.113.1", "blue": "203.0.113.2"}
    router = tagged.router.namespace
    router.ip("route", "replace", target[vrf], "via", "10.50.1.2", "vrf", vrf)
    tagged.members[vrf][0].ip("route", "replace", "203.0.113.0/24", "via", "10.50.0.1")
    tagged.router.settle()
    assert ping(tagged.members[vrf][0], target[vrf], "-W", "3").received == 2, "its own VRF has the route"
    assert ping(tagged.members[vrf][0], target[other]).received == 0, "the other one's is not seen"


def the_main_table_does_not_contain_routes_of_vrfs(tagged: Tagged) -> None:
    tagged.hosts[0].ip("route", "replace", "10.50.0.0/16", "via", "10.1.0.1")
    assert ping(tagged.hosts[0], "10.50.1.2").received == 0


def addresses_move_into_a_vrf_and_out_with_their_interface(tagged: Tagged) -> None:
    router = tagged.router.namespace
    device = Tags(21).add(router, port_name(0))
    for address in addresses(60, 0, 1):
        router.ip("address", "add", address, "dev", device)
    tagged.router.settle()
    for words in (("master", "red"), ("master", "blue"), ("nomaster",)):
        router.ip("link", "set", device, *words)
        tagged.router.settle()
    router.ip("link", "delete", device)
    tagged.router.settle()


def _priorities(frames: list[bytes], vlan: int) -> set[int]:
    """Bytes of the tags of IPv4 packets in a VLAN."""
    tagged = [frame for frame in frames if frame[12:14] == b"\x81\x00" and frame[16:18] == b"\x08\x00"]
    tags = [int.from_bytes(frame[14:16], "big") for frame in tagged]
    return {tag >> 13 for tag in tags if tag & 0xFFF == vlan}


def a_vlan_sends_with_the_priority_of_its_map(tagged: Tagged) -> None:
    target = addresses(5, 1, 2)[0].split("/")[0]
    device = f"{port_name(1)}.5"
    router = tagged.router.namespace
    ping(tagged.hosts[0], target)
    with contextlib.closing(Wire(End(tagged.hosts[1], "eth0", ""))) as wire:
        router.ip("link", "set", device, "type", "vlan", "egress-qos-map", "0:5")
        tagged.router.settle()
        wire.drain()
        assert ping(tagged.hosts[0], target).received == 2
        assert _priorities(wire.drain(), 5) == {5}
        router.ip("link", "set", device, "type", "vlan", "egress-qos-map", "0:0")
        tagged.router.settle()
    _cross(tagged, tagged.hosts[0], target)


@contextlib.contextmanager
def _checked(tagged: Tagged, device: str, mode: int) -> Iterator[None]:
    """With a value of rp_filter on an interface of the router."""
    key = f"net.ipv4.conf.{device.replace('.', '/')}.rp_filter"
    tagged.router.namespace.run("sysctl", "-qw", f"{key}={mode}")
    tagged.router.settle()
    yield
    tagged.router.namespace.run("sysctl", "-qw", f"{key}=0")
    tagged.router.settle()


def _arrives(tagged: Tagged, source: Namespace, address: str, target: str) -> bool:
    """Whether a packet from one of the source's addresses reaches a host; workers drop it if not."""
    before = tagged.router.account().drops.get("rpf_failed", 0) if isinstance(tagged.router, Dl3dRouter) else 0
    with contextlib.closing(Wire(End(tagged.hosts[1], "eth0", ""))) as wire:
        ping(source, target, "-W", "3", count=1)  # from the address that belongs there: neighbours are resolved
        wire.drain()
        ping(source, target, "-I", address, "-W", "1", count=1)
        assert ping(source, target, "-W", "3", count=1).received, "what was sent before it has arrived, too"
        found = any(socket.inet_aton(address) + socket.inet_aton(target) in frame for frame in wire.drain())
    if isinstance(tagged.router, Dl3dRouter):
        assert tagged.router.closed_account().drops.get("rpf_failed", 0) == before + (not found)
    return found


@pytest.mark.parametrize(("network", "device"), [(5, "5"), (7, "100.7")])
def sources_in_a_vlan_are_checked_by_its_own_setting(tagged: Tagged, network: int, device: str) -> None:
    near, target = tagged.hosts[0], f"10.{network}.1.2"
    near.ip("route", "add", f"{target}/32", "via", f"10.{network}.0.1")
    other = "10.6.0.2"  # routed to another VLAN of the same port
    assert _arrives(tagged, near, other, target)
    with _checked(tagged, port_name(0), 1):
        assert _arrives(tagged, near, other, target), "the port's own setting is for untagged packets"
    with _checked(tagged, f"{port_name(0)}.{device}", 1):
        assert not _arrives(tagged, near, other, target)
        assert _arrives(tagged, near, f"10.{network}.0.2", target)
    with _checked(tagged, f"{port_name(0)}.{device}", 2):
        assert _arrives(tagged, near, other, target)
    near.ip("route", "del", f"{target}/32")


def sources_in_a_vrf_are_looked_up_in_its_table(tagged: Tagged) -> None:
    router, near, away = tagged.router.namespace, tagged.members["red"][0], "198.51.100.9"
    device, target = f"{port_name(0)}.11", "10.50.1.2"
    near.ip("address", "add", f"{away}/32", "dev", "lo")
    assert _arrives(tagged, near, away, target)
    with _checked(tagged, device, 2):
        assert not _arrives(tagged, near, away, target)
        router.ip("route", "add", away, "via", "10.50.1.2", "vrf", "red")
        tagged.router.settle()
        assert _arrives(tagged, near, away, target)
    with _checked(tagged, device, 1):
        assert not _arrives(tagged, near, away, target), "routed to another interface of the VRF"
        router.ip("route", "replace", away, "via", "10.50.0.2", "vrf", "red")
        tagged.router.settle()
        assert _arrives(tagged, near, away, target)
    router.ip("route", "del", away, "vrf", "red")
    near.ip("address", "del", f"{away}/32", "dev", "lo")
    tagged.router.settle()


def sources_that_a_vrf_does_not_know_are_looked_up_in_the_main_table(tagged: Tagged) -> None:
    router, near, away = tagged.router.namespace, tagged.members["red"][0], "198.51.100.9"
    device, target = f"{port_name(0)}.11", "10.50.1.2"
    near.ip("address", "add", f"{away}/32", "dev", "lo")
    router.ip("route", "add", away, "via", "10.1.0.2")
    with _checked(tagged, device, 2):
        assert _arrives(tagged, near, away, target)
        router.ip("route", "add", "unreachable", "default", "metric", "4278198272", "vrf", "red")
        tagged.router.settle()
        assert not _arrives(tagged, near, away, target), "the VRF ends the search"
        router.ip("route", "del", "unreachable", "default", "vrf", "red")
        tagged.router.settle()
    with _checked(tagged, device, 1):
        assert not _arrives(tagged, near, away, target)
    router.ip("route", "del", away)
    near.ip("address", "del", f"{away}/32", "dev", "lo")
    tagged.router.settle()


def a_vlan_that_nobody_has_is_no_way_in(tagged: Tagged) -> None:
    host = tagged.hosts[0]
    device = Tags(99).add(host, "eth0")
    host.ip("address", "add", "10.5.0.77/32", "dev", device)
    host.ip("neighbour", "add", "10.99.0.1", "lladdr", "02:00:00:00:00:01", "dev", device)
    host.ip("route", "add", "10.6.1.2/32", "via", "10.99.0.1", "dev", device, "onlink")
    assert ping(host, "10.6.1.2").received == 0
    host.ip("link", "delete", device)


def labels_of_mpls_are_put_on_and_taken_off(tagged: Tagged) -> None:
    router, (near, far) = tagged.router.namespace, tagged.hosts
    router.run("modprobe", "-a", "mpls_router", "mpls_iptunnel")
    for namespace, device in ((router, port_name(0)), (near, "eth0")):
        namespace.run("sysctl", "-qw", "net.mpls.platform_labels=100", f"net.mpls.conf.{device}.input=1")
    batch(near, ["address add 10.77.0.1/32 dev lo", "route add 10.77.0.2/32 encap mpls 16 via 10.1.0.1 src 10.77.0.1"])
    batch(near, ["route add 17 dev lo"], "-M")
    batch(far, ["address add 10.77.0.2/32 dev lo", "route add 10.77.0.1/32 via 10.1.1.1"])
    batch(router, ["route add 16 via inet 10.1.1.2"], "-M")
    batch(router, ["route add 10.77.0.1/32 encap mpls 17 via 10.1.0.2"])
    tagged.router.settle()
    pings = ping(near, "10.77.0.2", "-W", "3")
    assert pings.received == pings.sent, pings.text
    if isinstance(tagged.router, Dl3dRouter):
        assert "encapsulation" not in str(tagged.router.call("unsupported"))
