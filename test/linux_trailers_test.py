"""Bytes after a packet in its frame; the router is the kernel, then dl3d.

Both forward the packet without them. dl3d keeps padding to the minimum length of Ethernet, which the devices of Linux
add anew.
"""

import time

import pytest
from harness.frames import Ether, ip4, ip6
from harness.network import SMALL_MTU, Network
from harness.probes import ETHERNET_BYTES, PATIENCE_S, carries, listening, wait_reached
from harness.router import router_mac

MINIMUM = 60
CASES = ((0, 18), (0, 40), (12, 1), (18, 1), (18, 4), (100, 1), (100, 300), (1000, 400))  # payload, trailer
UDP_BYTES = {4: 28, 6: 48}  # with the header of IP


def _target(network: Network, family: int) -> str:
    return network["h1"].address(family)


def _frame(network: Network, family: int, payload: int) -> bytes:
    h0, make = network["h0"], ip4 if family == 4 else ip6
    packet = make(_target(network, family), payload=payload, src=h0.address(family))
    return bytes(Ether(src=h0.mac, dst=router_mac(h0.link)) / packet)


def _forwarded(network: Network, frame: bytes, target: str) -> bytes:
    """The frame that h1 receives."""
    with listening(network["h1"]) as out, listening(network["h0"]) as into:
        into.send(frame)
        deadline = time.monotonic() + PATIENCE_S
        while (left := deadline - time.monotonic()) > 0:
            got = out.receive(left)
            if got and carries(got, target):
                return got
    raise AssertionError(f"no packet for {target} arrived")


@pytest.fixture(autouse=True)
def _reached(network: Network) -> None:
    for family in (4, 6):
        wait_reached(network, _target(network, family))


@pytest.mark.parametrize("family", [4, 6])
def a_packet_leaves_without_its_trailer(network: Network, family: int) -> None:
    target = _target(network, family)
    with network.through_workers(len(CASES)):
        for payload, trailer in CASES:
            frame = _frame(network, family, payload)
            out = _forwarded(network, frame + b"\xee" * trailer, target)
            end = ETHERNET_BYTES + UDP_BYTES[family] + payload
            assert end <= len(out) <= (max(end, MINIMUM) if network.dl3d else end), (payload, trailer)
            assert out[end - payload : end] == frame[end - payload :]


@pytest.mark.parametrize("family", [4, 6])
def the_packet_alone_has_to_fit_the_mtu(network: Network, family: int) -> None:
    payload = SMALL_MTU - UDP_BYTES[family]
    frame = _frame(network, family, payload)
    with network.shrunk(1, "h1"):
        wait_reached(network, _target(network, family))
        with network.through_workers(1):
            out = _forwarded(network, frame + bytes(100), _target(network, family))
    assert len(out) == ETHERNET_BYTES + SMALL_MTU
