"""Neighbour discovery where the router answers for others; the router is the kernel, then dl3d.

Linux receives neighbour discovery unicast to them (ip6_forward_proxy_check), and forwards everything else to them.
"""

import contextlib
import time
from collections.abc import Iterator

from harness.frames import Ether
from harness.network import Host, Network
from harness.probes import MOMENT_S, PATIENCE_S, arrives, listening, packet_from, vanishes, wait_reached
from harness.router import router_mac
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6


def _question(host: Host, target: str) -> bytes:
    """Whether a neighbour is still reachable, asked as in neighbour unreachability detection (RFC 4861, 7.3.3)."""
    asked = ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=host.mac)
    return bytes(
        Ether(src=host.mac, dst=router_mac(host.link)) / IPv6(src=host.address(6), dst=target, hlim=255) / asked
    )


def _is_answered(host: Host, target: str, within_s: float) -> bool:
    with listening(host) as wire:
        wire.send(_question(host, target))
        deadline = time.monotonic() + within_s
        while frame := wire.receive(max(deadline - time.monotonic(), 0.0)):  # including what came in our pauses
            answer = Ether(frame)
            if ICMPv6ND_NA in answer and answer[ICMPv6ND_NA].tgt == target:
                return True
    return False


@contextlib.contextmanager
def _standing_for(network: Network, target: str) -> Iterator[None]:
    network.ip(f"neighbour add proxy {target} dev p0")
    try:
        yield
    finally:
        network.ip(f"neighbour del proxy {target} dev p0")


def the_router_answers_who_asks_for_a_proxied_neighbour(network: Network) -> None:
    asking, asked = network["h0"], network["h1"]
    target = asked.address(6)
    wait_reached(network, target)
    with network.while_set(ipv6__conf__all__proxy_ndp="1"):
        with _standing_for(network, target):
            assert _is_answered(asking, target, PATIENCE_S)
            assert vanishes(asking, _question(asking, target), asked, target)
        assert not _is_answered(asking, target, MOMENT_S)
        assert arrives(asking, _question(asking, target), asked, target)


def packets_to_a_proxied_neighbour_are_forwarded(network: Network) -> None:
    target = network["h1"].address(6)
    wait_reached(network, target)
    with network.while_set(ipv6__conf__all__proxy_ndp="1"), _standing_for(network, target), network.through_workers(1):
        assert arrives(network["h0"], packet_from(network["h0"], target), network["h1"], target)
        assert network.names_unsupported("proxy_ndp")
    assert network.names_supported("proxy_ndp")
