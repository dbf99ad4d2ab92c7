"""Group packets in frames addressed to the router alone; the router is the kernel, then dl3d.

Some switches and access points send group packets to each member as unicast frames (RFC 6085). A host that checks
whether an address is free, or requests one, has no source address yet.
"""

import time

from harness.frames import Ether
from harness.network import Host, Network
from harness.probes import MOMENT_S, PATIENCE_S, arrives, listening, packet_from, vanishes, wait_reached
from harness.router import router_mac
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, IPv6

OURS = "2001:db8:a0::1"
SOLICITED = "ff02::1:ff00:1"


def _is_taken(host: Host, target: str, mac: str) -> bool:
    """Whether anyone claims an address, asked as in duplicate address detection."""
    question = IPv6(src="::", dst=SOLICITED, hlim=255) / ICMPv6ND_NS(tgt=target)
    with listening(host) as wire:
        wire.send(bytes(Ether(src=host.mac, dst=mac) / question))
        deadline = time.monotonic() + (PATIENCE_S if target == OURS else MOMENT_S)
        while (left := deadline - time.monotonic()) > 0:
            answer = Ether(wire.receive(left) or bytes(14))
            if ICMPv6ND_NA in answer and answer[ICMPv6ND_NA].tgt == target:
                return True
    return False


def an_address_in_use_is_advertised_to_a_host_without_one(network: Network) -> None:
    for mac in ("33:33:ff:00:00:01", router_mac(0)):
        assert _is_taken(network["h0"], OURS, mac)
        assert not _is_taken(network["h0"], "2001:db8:a0::99", mac)


def packets_without_a_source_go_nowhere_else(network: Network) -> None:
    wait_reached(network, "10.0.9.2")
    for target, nobody in (("10.0.9.2", ".".join("0000")), ("2001:db8:a9::2", "::")):
        assert vanishes(network["h0"], packet_from(network["h0"], target, src=nobody), network["h1"], target)


def the_limited_broadcast_goes_nowhere(network: Network) -> None:
    to_all, other = "255.255.255.255", "255.255.255.254"
    network.ip(f"route add 255.0.0.0/8 via {network['h1'].address(4)}")
    wait_reached(network, network["h1"].address(4))
    with network.through_workers(1):
        assert arrives(network["h0"], packet_from(network["h0"], other), network["h1"], other)
    for route in ("255.0.0.0/8", f"{to_all}/32"):
        network.ip(f"route replace {route} via {network['h1'].address(4)}")
        for source in (network["h0"].address(4), ".".join("0000")):
            assert vanishes(network["h0"], packet_from(network["h0"], to_all, src=source), network["h1"], to_all)
