"""Routing on VLANs of a bridge: dl3d does with packets what the kernel alone does. Runs in a guest.

p0, p1, p2 [ br0 br0.10 br0.20 router ] p3     br0 has 10.0.5.1/24, br0.V 10.0.V.1/24, p3 10.0.3.1/24, ...
"""

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from harness.bridged import BRIDGE, BRIDGE_MAC, BRIDGED, ROUTED, addresses
from harness.bridged_pair import BROADCAST, MAGIC, OUTSIDE, Both, Side, mac_of
from harness.frames import Ether, Raw
from harness.network import FAMILIES, length, network
from harness.router import port_name, router_mac
from harness.wire import wait_until

from dl3.lab.command import run
from dl3.model.fault import Fault

DEVICE = "net_pcap{index},iface={name},phy_mac=1"  # see tagged.py; with the MAC address of the cable
HOSTS = (2, 3, 4, 5)
VLANS = (10, 20)
NETWORKS = {BRIDGE: "br0", 10: "br0.10", 20: "br0.20"}
OWN_MAC = "02:00:00:00:05:77"  # of br0.20, at times
CHANGES, STRANGER = 25, 99


def _neighbours() -> list[str]:
    """The lines that give the router all hosts' MAC addresses, which are the same in all networks."""
    lines = [f"neighbour replace {network(family, ROUTED, 2)} lladdr {OUTSIDE} dev p3" for family in FAMILIES]
    for number, device in NETWORKS.items():
        for family in FAMILIES:
            for host in HOSTS:
                lines.append(f"neighbour replace {network(family, number, host)} lladdr {mac_of(host)} dev {device}")
    return lines


def _vlan_interface(vlan: int, protocol: str = "802.1Q") -> list[str]:
    """The lines that make it."""
    words = f"link add link br0 name br0.{vlan} address {BRIDGE_MAC} type vlan protocol {protocol} id {vlan}"
    return [words, f"link set br0.{vlan} up"]


def _settled() -> list[str]:
    """The lines that give all interfaces the addresses and neighbours that they have lost."""
    lines = addresses()
    for vlan in VLANS:
        for family in FAMILIES:
            lines.append(f"address replace {network(family, vlan, 1)}/{length(family)} dev br0.{vlan}")
    return lines + _neighbours()


def _tag(vid: int, protocol: int = 0x8100) -> bytes:
    return struct.pack("!HH", protocol, vid)


# What a host may send: untagged, with a priority only, in VLANs, with tags that are not the bridge's, with two.
FORMS = (b"", _tag(0), _tag(1), _tag(10), _tag(20), _tag(30), _tag(10, 0x88A8), _tag(10) + _tag(20))


def _tagged(frame: bytes, tags: bytes) -> bytes:
    return frame[:12] + tags + frame[12:]


class Vlans(Both):
    """Both routers, with VLAN interfaces on the bridge."""

    filters = False
    has_many = False  # a port may have several VLANs, and is Linux's while the bridge does not filter by them

    def ip(self, *lines: str) -> None:
        """Run lines of `ip -batch` on both."""
        self.done += lines
        for side in self.sides:
            side.routed.ip(*lines)

    def bridge(self, *words: str) -> None:
        """Run bridge(8) on both, which accept or refuse it alike."""
        self.done.append(" ".join(words))
        results = []
        for side in self.sides:
            try:
                run(["bridge", "-n", side.routed.router.namespace.name, *words])
                results.append(True)
            except Fault:
                results.append(False)
        assert results[0] == results[1], f"{words} on both sides: {results}"
        self.settle()

    def settle(self) -> None:
        """Once what was said applies to packets."""
        for side in self.sides:
            if self.filters or not self.has_many:
                wait_until(side.routed.is_served, "workers served all ports")
            side.routed.router.settle()

    def set_filtering(self, filters: bool) -> None:
        """Set it, and forget all hosts."""
        self.filters = filters
        self.ip(f"link set br0 type bridge vlan_filtering {int(filters)}", "link set br0 type bridge fdb_flush")
        self.settle()

    def known(self, side: Side) -> set[tuple[str, int, str]]:
        """Where a bridge of Linux knows our hosts: those entries that it uses."""
        shown = run(["bridge", "-n", side.routed.router.namespace.name, "-j", "fdb", "show", "br", "br0"])
        hosts = {mac_of(host) for host in HOSTS}
        entries: list[dict[str, Any]] = json.loads(shown)
        return {
            (one["mac"], int(one.get("vlan", 0)), one["ifname"])
            for one in entries
            if one["mac"] in hosts and ("vlan" in one) == self.filters
        }

    def greet(self) -> None:
        """Have all hosts send to all in each form, until both bridges know the same; workers, too."""
        for link in BRIDGED:
            frames = []
            for host in (host for host, at in self.behind.items() if at == link):
                for form in FORMS:
                    self.number += 1
                    payload = MAGIC + struct.pack("!I", self.number) + bytes(40)
                    made = Ether(src=mac_of(host), dst=BROADCAST, type=0x88B5) / Raw(payload)
                    frames.append(_tagged(bytes(made), form))
            self.send(link, frames)
        wait_until(lambda: self.known(self.sides[0]) == self.known(self.sides[1]), f"both knew the same: {self.done}")
        self.settle()

    def packet_from(self, host: int, number: int, target: tuple[int, int], form: bytes, mac: str = BRIDGE_MAC) -> bytes:
        """A frame of a host to the router; its address and that of the receiver are of a network."""
        family = self.number % 2 * 2 + 4
        packet = self.packet(network(family, number, host), network(family, *target))
        return _tagged(bytes(Ether(src=mac_of(host), dst=mac) / packet), form)

    def packet_to(self, host: int, number: int) -> bytes:
        """A frame from outside to a host in a network."""
        family = self.number % 2 * 2 + 4
        packet = self.packet(network(family, ROUTED, 2), network(family, number, host))
        return bytes(Ether(src=OUTSIDE, dst=router_mac(ROUTED)) / packet)

    def unsupported(self) -> list[tuple[str, str]]:
        """What dl3d leaves to Linux, and where."""
        dl3d = self.sides[0].routed.dl3d
        assert dl3d
        return [(row["what"], row["where"]) for row in dl3d.call("unsupported")["unsupported"]]


@pytest.fixture(scope="module")
def vlans() -> Iterator[Vlans]:
    made = Vlans.build(_neighbours()[: len(FAMILIES)], DEVICE)
    made.ip("link set br0 type bridge mcast_snooping 0", *(line for vlan in VLANS for line in _vlan_interface(vlan)))
    made.ip(*_settled())
    made.behind = {host: index % len(BRIDGED) for index, host in enumerate(HOSTS)}
    yield made
    made.close()


def _expect_routed(vlans: Vlans, link: int, frames: list[bytes]) -> None:
    """Workers route them all, as the kernel does."""
    before = vlans.account()
    vlans.send(link, frames)
    since = vlans.account().since(before)
    assert (since.received, since.sent - since.injected, since.punted) == (len(frames), len(frames), 0), since


def without_filtering_workers_route_on_vlans(vlans: Vlans) -> None:
    vlans.greet()
    for link, host in ((0, 2), (1, 3), (2, 4)):
        frames = [vlans.packet_from(host, BRIDGE, (ROUTED, 2), form) for form in FORMS[:2] for _ in FAMILIES]
        frames += [vlans.packet_from(host, vlan, (ROUTED, 2), _tag(vlan)) for vlan in VLANS for _ in FAMILIES]
        frames += [vlans.packet_from(host, vlan, (BRIDGE, 3), _tag(vlan)) for vlan in VLANS for _ in FAMILIES]
        _expect_routed(vlans, link, frames)
    _expect_routed(
        vlans, ROUTED, [vlans.packet_to(host, number) for host in HOSTS for number in NETWORKS for _ in "ab"]
    )


def with_filtering_workers_route_in_the_vlans_of_each_port(vlans: Vlans) -> None:
    vlans.set_filtering(True)
    for vlan in VLANS:
        vlans.bridge("vlan", "add", "vid", str(vlan), "dev", "br0", "self")
        vlans.bridge("vlan", "add", "vid", str(vlan), "dev", "p0")
    vlans.bridge("vlan", "add", "vid", "10", "dev", "p1", "pvid", "untagged")
    vlans.bridge("vlan", "add", "vid", "20", "dev", "p2", "pvid", "untagged")
    vlans.greet()
    for host, link in ((2, 0), (5, 0)):
        frames = [vlans.packet_from(host, vlan, (ROUTED, 2), _tag(vlan)) for vlan in VLANS for _ in FAMILIES]
        frames += [vlans.packet_from(host, BRIDGE, (vlan, 2), b"") for vlan in VLANS for _ in FAMILIES]
        _expect_routed(vlans, link, frames)
    _expect_routed(vlans, 1, [vlans.packet_from(3, 10, (number, 2), b"") for number in (ROUTED, 20) for _ in "ab"])
    _expect_routed(vlans, 2, [vlans.packet_from(4, 20, (10, 3), b"") for _ in "ab"])
    reached = [(host, number) for host in (2, 5) for number in NETWORKS] + [(3, 10), (4, 20)]
    _expect_routed(vlans, ROUTED, [vlans.packet_to(host, number) for host, number in reached for _ in "ab"])


def a_vlan_may_be_in_a_vrf(vlans: Vlans) -> None:
    vlans.ip(
        "link add red type vrf table 1001", "link set red up", "link set br0.10 master red", "link set p3 master red"
    )
    vlans.ip(*_settled())
    _expect_routed(vlans, 0, [vlans.packet_from(2, 10, (ROUTED, 2), _tag(10)) for _ in "ab"])
    _expect_routed(vlans, ROUTED, [vlans.packet_to(3, 10) for _ in "ab"])
    vlans.send(0, [vlans.packet_from(2, BRIDGE, (ROUTED, 2), b"")])  # nobody there knows the way
    assert not vlans.sides[0].got[ROUTED]
    vlans.ip("link set br0.10 nomaster", "link set p3 nomaster", "link delete red")
    vlans.ip(*_settled())


def interfaces_with_other_tags_are_named_and_linuxs(vlans: Vlans) -> None:
    what = "VLAN interface on a bridge with other tags"
    vlans.ip("link add link br0 name br0.ad type vlan protocol 802.1ad id 10", "link set br0.ad up")
    vlans.ip("link add link br0.10 name br0.10.20 type vlan id 20", "link set br0.10.20 up")
    found = {where for name, where in vlans.unsupported() if name == what}
    assert found == {"br0.ad", "br0.10.20"}
    vlans.ip("link delete br0.10.20", "link delete br0.ad")
    assert what not in {name for name, _ in vlans.unsupported()}


def _change_vlan(vlans: Vlans, dice: random.Random) -> None:
    """Add, change or take away a VLAN of a port, or of the bridge itself."""
    where = ("dev", "br0", "self") if dice.random() < 0.5 else ("dev", port_name(dice.choice(BRIDGED)))
    vid = str(dice.choice((1, *VLANS)))
    if dice.random() < 0.25:
        vlans.bridge("vlan", "del", "vid", vid, *where)
        return
    words = [word for word in ("pvid", "untagged") if dice.random() < 0.4]
    vlans.bridge("vlan", "add", "vid", vid, *where, *words)


def _change_filtering(vlans: Vlans, dice: random.Random) -> None:
    """Its filtering, or its tags."""
    if dice.random() < 0.5:
        vlans.set_filtering(not vlans.filters)
    else:
        vlans.ip(f"link set br0 type bridge vlan_protocol {dice.choice(('802.1Q', '802.1ad'))}")
        vlans.settle()


def _change_interface(vlans: Vlans, dice: random.Random) -> None:
    """A VLAN interface goes, comes back as another one, is down, or has another address or MTU."""
    vlan = dice.choice(VLANS)
    what = dice.randrange(4)
    if what == 0:
        vlans.ip(f"link delete br0.{vlan}", *_vlan_interface(vlan, dice.choice(("802.1Q", "802.1Q", "802.1ad"))))
    elif what == 1:
        vlans.ip(f"link set br0.{vlan} down")
        vlans.send(0, [vlans.packet_from(2, vlan, (ROUTED, 2), _tag(vlan))])
        vlans.ip(f"link set br0.{vlan} up")
    elif what == 2:
        vlans.ip(f"link set br0.20 address {dice.choice((OWN_MAC, BRIDGE_MAC))}")
    else:
        vlans.ip(f"link set br0.{vlan} mtu {dice.choice((1300, 1500))}")
    vlans.ip(*_settled())


def _move(vlans: Vlans, dice: random.Random) -> None:
    vlans.behind[dice.choice(HOSTS)] = dice.choice(BRIDGED)


KINDS: list[Callable[[Vlans, random.Random], None]] = [_change_vlan, _change_filtering, _change_interface, _move]


def _burst(vlans: Vlans, dice: random.Random, link: int) -> list[bytes]:
    """Frames of the hosts behind a port to the router, or from outside to hosts."""
    if link == ROUTED:
        return [vlans.packet_to(dice.choice(HOSTS), dice.choice(list(NETWORKS))) for _ in range(16)]
    here = [host for host, at in vlans.behind.items() if at == link]
    frames = []
    for _ in range(16 if here else 0):
        target = (dice.choice((ROUTED, *NETWORKS)), dice.choice(HOSTS[:2]))
        number = dice.choice(list(NETWORKS))
        mac = OWN_MAC if dice.random() < 0.1 else BRIDGE_MAC
        frames.append(vlans.packet_from(dice.choice(here), number, target, dice.choice(FORMS), mac))
    return frames


def random_packets_fare_as_with_the_kernel_alone(vlans: Vlans) -> None:
    dice = random.Random(1)
    before = vlans.account()
    vlans.has_many = True
    for _ in range(CHANGES):
        dice.choices(KINDS, (6, 2, 3, 2))[0](vlans, dice)
        vlans.greet()
        for link in (*BRIDGED, ROUTED):
            vlans.send(link, _burst(vlans, dice, link))
    since = vlans.account().since(before)
    assert since.sent - since.injected > 10 * CHANGES, "workers routed a part of them"
    print(f"{since.received} frames, {since.sent - since.injected} sent by workers, {CHANGES} changes")
