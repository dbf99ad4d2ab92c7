"""Random packets to, from and within a bridge with addresses: dl3d does with them what the kernel alone does."""

import os
import random
from collections.abc import Iterator

import pytest
from harness.bridged import BRIDGE, BRIDGE_MAC, BRIDGED, N_LINKS, ROUTED
from harness.bridged_pair import OUTSIDE, Both, mac_of
from harness.frames import IP, Ether, Packet
from harness.network import FAMILIES, network
from harness.router import port_name, router_mac
from harness.shell import batch
from harness.wire import wait_until
from scapy.layers.inet import IPOption_NOP
from scapy.layers.l2 import Dot1Q

HOSTS = (2, 3, 4, 5)  # on the bridge; 6 has never sent a frame
SILENT, STRANGER = 6, 99
BURSTS = 30


def _neighbours() -> list[str]:
    """The lines that give the router all hosts' MAC addresses."""
    lines = []
    for family in FAMILIES:
        for host in (*HOSTS, SILENT):
            lines.append(f"neighbour replace {network(family, BRIDGE, host)} lladdr {mac_of(host)} dev br0")
        lines.append(f"neighbour replace {network(family, ROUTED, 2)} lladdr {OUTSIDE} dev {port_name(ROUTED)}")
    return lines


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    made = Both.build(_neighbours())
    yield made
    made.close()


def workers_route_from_and_to_a_bridge(both: Both) -> None:
    for host, link in zip(HOSTS, (0, 1, 2, 0), strict=True):
        both.introduce(host, link)
    for family in FAMILIES:
        before = both.account()
        both.send(1, [both.to_outside(family, 3) for _ in range(100)])
        both.send(ROUTED, [both.to_host(family, host) for host in HOSTS for _ in range(25)])
        after = both.account().since(before)
        assert (after.received, after.sent - after.injected, after.drops) == (200, 200, {})
        assert after.punted == 0


def packets_follow_a_host_that_moves(both: Both) -> None:
    for link in (1, 2, 0):
        both.introduce(HOSTS[0], link)
        before = both.account()
        both.send(ROUTED, [both.to_host(family, HOSTS[0]) for family in FAMILIES])
        assert len(both.sides[0].got[link]) == len(FAMILIES)
        assert both.account().since(before).punted == 0


def linux_gets_the_first_packets_only(both: Both) -> None:
    for side in both.sides:
        side.routed.router.namespace.ip("link", "set", "dev", "br0", "type", "bridge", "fdb_flush")
    wait_until(lambda: not both.sides[0].routed.knows(mac_of(HOSTS[1])), "workers had forgotten it")
    before = both.account()
    both.send(ROUTED, [both.to_host(4, HOSTS[1])])  # flooded
    both.send(1, [both.to_outside(4, HOSTS[1])])  # learnt
    assert both.account().since(before).punted == 2
    wait_until(lambda: both.sides[0].routed.knows(mac_of(HOSTS[1])) == port_name(1), "workers knew it")
    before = both.account()
    both.send(ROUTED, [both.to_host(4, HOSTS[1])])
    both.send(1, [both.to_outside(4, HOSTS[1])])
    assert both.account().since(before).punted == 0


def _random_packet(both: Both, dice: random.Random, host: int | None, is_bridged: bool = False) -> Packet:
    """Of a host on the bridge, or of the one outside. Kernels with br_netfilter drop wrong checksums in a bridge, too."""
    family = dice.choice(FAMILIES)
    source = network(family, ROUTED, 2) if host is None else network(family, BRIDGE, host)
    targets = [network(family, BRIDGE, one) for one in (*HOSTS, SILENT)]
    if host is not None:
        targets += [network(family, ROUTED, 2)] * 5
    targets.append(network(family, BRIDGE, 1))
    if family == 6:  # of IPv4, Linux limits how many it calls unreachable, by time
        targets.append(network(family, 77, 1))
    fields: dict[str, int] = {"more": dice.choice((0, 20, 300, 1420))}
    if dice.random() < 0.1:
        fields["ttl"] = dice.randrange(3)
    if family == 4 and not is_bridged and dice.random() < 0.1:
        fields["chksum"] = dice.randrange(65536)
    packet = both.packet(source, dice.choice(targets), **fields)
    if family == 4 and dice.random() < 0.1:
        packet[IP].options = [IPOption_NOP()] * 4
    return packet


def _random_frame(both: Both, dice: random.Random, link: int) -> bytes:
    if link == ROUTED:
        return bytes(Ether(src=OUTSIDE, dst=router_mac(ROUTED)) / _random_packet(both, dice, None))
    host = dice.choice([one for one, at in both.behind.items() if at == link and one != STRANGER] or [STRANGER])
    to_bridge = dice.random() < 0.8
    frame = Ether(src=mac_of(host), dst=BRIDGE_MAC if to_bridge else mac_of(dice.choice(HOSTS)))
    if dice.random() < 0.05:
        frame /= Dot1Q(vlan=dice.choice((0, 5)))
    return bytes(frame / _random_packet(both, dice, host, not to_bridge))


def _send_random_packets(both: Both, n_bursts: int) -> None:
    dice = random.Random(int(os.environ.get("DL3_SEED", "1")))
    before = both.account()
    for step in range(n_bursts):
        link = dice.randrange(N_LINKS)
        if link in BRIDGED and step % 3 == 0:
            host = dice.choice(HOSTS)
            if both.behind.get(host) != link:
                both.introduce(host, link)
        both.send(link, [_random_frame(both, dice, link) for _ in range(dice.randrange(1, 10))])
        if link in BRIDGED:  # what comes out shows that the kernel has those before, also the ones that it dropped
            both.introduce(STRANGER, link)
    since = both.account().since(before)
    assert since.sent > since.injected + n_bursts  # workers did a part of it


def random_packets_fare_as_with_the_kernel_alone(both: Both) -> None:
    _send_random_packets(both, BURSTS)


@pytest.mark.long
def so_do_many_more(both: Both) -> None:
    _send_random_packets(both, 20 * BURSTS)


def isolated_ports_are_reached_from_the_bridge_itself(both: Both) -> None:
    for host, link in zip(HOSTS[:2], (0, 1), strict=True):
        both.introduce(host, link)
    for side in both.sides:
        batch(
            side.routed.router.namespace,
            [f"link set {port_name(link)} type bridge_slave isolated on" for link in (0, 1)],
        )
        side.routed.router.settle()
    packet = both.packet(network(4, BRIDGE, HOSTS[0]), network(4, BRIDGE, HOSTS[1]))
    direct, through = (bytes(Ether(src=mac_of(HOSTS[0]), dst=dst) / packet) for dst in (mac_of(HOSTS[1]), BRIDGE_MAC))
    both.send(0, [direct])
    assert not any(both.sides[0].got)
    both.send(0, [through])
    assert len(both.sides[0].got[1]) == 1
    for side in both.sides:
        batch(
            side.routed.router.namespace,
            [f"link set {port_name(link)} type bridge_slave isolated off" for link in (0, 1)],
        )


def macvlans_on_a_bridge_stay_with_linux(both: Both) -> None:
    both.introduce(HOSTS[0], 0)
    for side in both.sides:
        side.routed.ip("link add mv0 link br0 address 02:00:00:00:05:99 type macvlan mode bridge", "link set mv0 up")
    frame = both.to_outside(4, HOSTS[0])
    both.send(0, [frame, frame[:3] + b"\x00\x05\x99" + frame[6:]])
    for side in both.sides:
        side.routed.ip("link delete mv0")
