"""EVPN with FRR, unmodified: the first of two leaves is the kernel, then dl3d; the second one is the kernel.

Types 2 (MAC addresses), 3 (flood lists) and 5 (prefixes), a host that moves, restarts of FRR, and a crash of dl3d.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from harness.evpn import HOST, VM, VM_MAC, VNI, Overlay, mac_of
from harness.frames import IP, UDP, Ether, IPv6
from harness.one_way import all_arriving
from harness.router import ROUTERS, Dl3dRouter
from harness.shell import ping
from harness.tcp import carry
from harness.wire import Wire, wait_until
from scapy.layers.inet6 import ICMPv6ND_RS, ICMPv6NDOptSrcLLAddr

from dl3.lab.namespace import End

pytestmark = pytest.mark.long  # four daemons and, at most, a dozen namespaces

BYTES = 1 << 20
MOVES = int(os.environ.get("DL3_N", "50"))
PATIENCE_S = 180.0
PATIENT = ("-W", "60")
MACS = [mac_of(number, HOST) for number in (1, 2)]
SHY_MACS = ["02:00:00:00:0e:1{}", "02:00:00:00:0e:2{}"]  # of senders of floods, which send nothing else
MARK, FLOODS = b"a flood ", 50


@pytest.fixture(scope="module", params=ROUTERS)
def overlay(request: pytest.FixtureRequest) -> Iterator[Overlay]:
    with contextlib.closing(Overlay(request.param)) as made:
        yield made
        made.settle()
        for leaf in made.leaves:
            leaf.router.check()


def _knows(overlay: Overlay) -> bool:
    """Whether either leaf has its own host as local, and the other one's as remote."""
    for index, leaf in enumerate(overlay.leaves):
        found = leaf.macs()
        if (found.get(MACS[index]), found.get(MACS[1 - index])) != ("local", "remote"):
            return False
    return True


def _pass_both_ways(overlay: Overlay) -> None:
    for index in range(2):
        bridged = ping(overlay.hosts[index], f"10.0.0.{2 - index}", *PATIENT)
        routed = ping(overlay.far[index], f"10.2.{2 - index}.2", *PATIENT)
        assert (bridged.received, routed.received) == (bridged.sent, routed.sent), bridged.text + routed.text


def frr_has_the_addresses_on_both_sides(overlay: Overlay) -> None:
    _pass_both_ways(overlay)
    wait_until(lambda: _knows(overlay), "FRR had both hosts, one local, one remote", PATIENCE_S)


def tcp_carries_a_megabyte_bridged_and_routed(overlay: Overlay) -> None:
    for index in range(2):
        carry(overlay.hosts[index], overlay.hosts[1 - index], f"10.0.0.{2 - index}", BYTES)
        carry(overlay.far[index], overlay.far[1 - index], f"10.2.{2 - index}.2", BYTES)


def workers_forward_what_is_bridged_and_routed(overlay: Overlay) -> None:
    router = overlay.leaves[0].router
    if not isinstance(router, Dl3dRouter):
        return
    _pass_both_ways(overlay)
    overlay.settle()
    before = router.closed_account()
    for host, address in ((overlay.hosts[0], "10.0.0.2"), (overlay.far[0], "10.2.2.2")):
        assert ping(host, address, *PATIENT, count=20).received == 20
    since = router.closed_account().since(before)
    assert since.sent - since.injected >= 80
    assert since.punted < 40  # of ARP, ND and BGP, not of echoes


def _flood(mac: str, number: int, to: str) -> bytes:
    """A frame to all, or to an address that nobody has; not one that Linux floods and learns from by itself (ARP)."""
    packet = IP(src="10.0.0.77", dst="10.0.0.255") / UDP(sport=7, dport=9) / (MARK + number.to_bytes(2, "big"))
    return bytes(Ether(src=mac, dst=to) / packet)


def _numbers(wire: Wire, mac: str) -> Counter[int]:
    """The floods of a sender that came since the last call."""
    sender = bytes.fromhex(mac.replace(":", ""))
    found = (
        frame[frame.index(MARK) + len(MARK) :] for frame in wire.drain() if frame[6:12] == sender and MARK in frame
    )
    return Counter(int.from_bytes(rest[:2], "big") for rest in found)


def _check_told(overlay: Overlay, index: int, mac: str) -> None:
    """Linux of one leaf has told that the address is behind a port, that of the other one never."""
    here, there = (overlay.monitors[which].lines_of(mac) for which in (index, 1 - index))
    assert any(" dev p0 " in line for line in here), mac
    assert there, mac
    assert [line for line in there if " dev vx" not in line] == []


@pytest.mark.parametrize("to", ["ff:ff:ff:ff:ff:ff", "02:00:00:00:0d:99"], ids=["broadcast", "unknown"])
@pytest.mark.parametrize("index", [0, 1])
def floods_come_once_to_each_side_and_are_learnt_from(overlay: Overlay, index: int, to: str) -> None:
    mac = SHY_MACS[index].format(int(to.startswith("02")))
    ends = [End(host, "eth0", MACS[which]) for which, host in enumerate(overlay.hosts)]
    ends += [End(overlay.vm, f"eth{which}", VM_MAC) for which in range(2)]
    with ExitStack() as stack:
        wires = [stack.enter_context(contextlib.closing(Wire(end))) for end in ends]
        sender = wires.pop(index)
        got = [Counter[int]() for _ in wires]
        for number in range(FLOODS):
            sender.send(_flood(mac, number, to))

        def have_come() -> bool:
            for wire, counts in zip(wires, got, strict=True):
                counts.update(_numbers(wire, mac))
            return all(len(counts) == FLOODS for counts in got)

        wait_until(have_come, "each flood came to each host", PATIENCE_S)
        wanted = ["local", "remote"] if index == 0 else ["remote", "local"]
        wait_until(
            lambda: [leaf.macs().get(mac) for leaf in overlay.leaves] == wanted, "FRR knew the sender", PATIENCE_S
        )
        for leaf in overlay.leaves:
            leaf.router.check()
        _check_told(overlay, index, mac)
        have_come()
        assert got == [Counter(range(FLOODS))] * len(wires)
        assert _numbers(sender, mac) == {}


def a_host_that_moves_is_reached_where_it_is(overlay: Overlay) -> None:
    for _ in range(MOVES):
        overlay.move()
        wait_until(overlay.is_moved, "FRR knew where the VM was", PATIENCE_S)
        overlay.settle()
        for host in overlay.hosts:
            pings = ping(host, VM, *PATIENT)
            assert pings.received == pings.sent, pings.text
    assert overlay.leaves[0].moves_of(VM_MAC) == MOVES


@pytest.mark.parametrize("index", [0, 1])
def a_restart_of_frr_loses_nothing_that_goes_out(overlay: Overlay, index: int) -> None:
    """FRR's graceful restart does not extend to EVPN: the other leaf forgets what is here while the session is down."""
    _pass_both_ways(overlay)
    leaf, bridged, routed = overlay.leaves[index], f"10.0.0.{2 - index}", f"10.2.{2 - index}.2"
    overlay.fix_neighbours()
    assert leaf.frr
    with (
        all_arriving(overlay.hosts[index], overlay.hosts[1 - index], bridged),
        all_arriving(overlay.far[index], overlay.far[1 - index], routed),
    ):
        leaf.frr.restart()
        wait_until(lambda: _knows(overlay), "FRR had both hosts again", PATIENCE_S)
        for one in overlay.leaves:
            wait_until(one.is_ready, "FRR had the other leaf's flood list and prefix again", PATIENCE_S)
    _pass_both_ways(overlay)


def a_crash_of_dl3d_loses_no_address(overlay: Overlay) -> None:
    router = overlay.leaves[0].router
    if not isinstance(router, Dl3dRouter):
        return
    forwarder = router.forwarder
    assert forwarder
    forwarder.kill()
    assert overlay.leaves[0].macs()[MACS[0]] == "local"
    forwarder.start_again()
    forwarder.wait_ready()
    router.settle()
    _pass_both_ways(overlay)
    wait_until(lambda: _knows(overlay), "FRR had both hosts", PATIENCE_S)


@pytest.mark.parametrize("index", [0, 1])
def a_neighbour_that_linux_learns_is_no_move(overlay: Overlay, index: int) -> None:
    """FRR prepares a number for its remote address then; BGP is not told."""
    _pass_both_ways(overlay)
    wait_until(lambda: _knows(overlay), "FRR had both hosts", PATIENCE_S)
    mac, there = MACS[index], overlay.leaves[1 - index]
    packet = IPv6(src=f"fe80::e:{index}", dst="ff02::2", hlim=255) / ICMPv6ND_RS() / ICMPv6NDOptSrcLLAddr(lladdr=mac)
    frame = bytes(Ether(src=mac, dst="33:33:00:00:00:02") / packet)
    with contextlib.closing(Wire(End(overlay.hosts[index], "eth0", mac))) as wire:

        def is_prepared() -> bool:
            wire.send(frame)
            return int(there.show(f"evpn mac vni {VNI} mac {mac}")[mac]["localSequence"]) == 1

        wait_until(is_prepared, "FRR had prepared for a move", PATIENCE_S)
    _check_told(overlay, index, mac)
    assert [leaf.moves_of(mac) for leaf in overlay.leaves] == [0, 0]


def no_address_behind_the_other_leaf_was_ever_reported_as_local(overlay: Overlay) -> None:
    _pass_both_ways(overlay)
    wait_until(lambda: _knows(overlay), "FRR had both hosts", PATIENCE_S)
    for index, mac in enumerate(MACS):
        _check_told(overlay, index, mac)
        assert [leaf.moves_of(mac) for leaf in overlay.leaves] == [0, 0]
