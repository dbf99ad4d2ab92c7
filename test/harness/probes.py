"""Whether packets get through a router: echoes, and frames that hosts send and capture."""

import contextlib
import time
from ipaddress import ip_address
from typing import Any

from harness.frames import Ether, Packet, ip4, ip6
from harness.network import Host, Network
from harness.router import router_mac
from harness.shell import ping
from harness.wire import Wire, wait_until

ETHERNET_BYTES = 14
PATIENCE_S = 10.0
ECHO_S, N_ECHOES = 2.0, 5
ECHOES = {4: (1, (0, 8)), 6: (58, (128, 129))}  # protocol, types
MOMENT_S = 0.25


def reaches(network: Network, target: str, source: str = "h0") -> bool:
    """Whether an echo comes back: a new address, link or neighbour may need a moment."""
    namespace = network[source].namespace
    return any(ping(namespace, target, "-W", str(ECHO_S), count=1).received for _ in range(N_ECHOES))


def misses(network: Network, target: str, source: str = "h0") -> bool:
    """Whether no echo comes back for a moment."""
    return ping(network[source].namespace, target, "-W", str(MOMENT_S), count=1).received == 0


def wait_reached(network: Network, target: str, source: str = "h0") -> None:
    """Links and neighbours may need a moment."""
    wait_until(lambda: reaches(network, target, source), f"{source} reached {target}")


def packet_from(host: Host, target: str, **fields: Any) -> bytes:
    """A UDP packet from a host to the router's port, as a frame."""
    family = 6 if ":" in target else 4
    make = ip6 if family == 6 else ip4
    packet: Packet = make(target, **({"src": host.address(family)} | fields))
    return bytes(Ether(src=host.mac, dst=router_mac(host.link)) / packet)


def carries(frame: bytes, target: str) -> bool:
    """Whether a frame carries an IP packet for this address."""
    address = ip_address(target).packed
    first = ETHERNET_BYTES + (24 if len(address) == 16 else 16)
    return frame[first : first + len(address)] == address


def is_echo(frame: bytes) -> bool:
    """Whether a frame carries an echo or its reply: one of an earlier step that came late is not what a test sent."""
    packet = frame[ETHERNET_BYTES:]
    version = packet[0] >> 4
    if version not in ECHOES:
        return False
    protocol, types = ECHOES[version]
    at = 40 if version == 6 else 4 * (packet[0] & 15)
    return packet[6 if version == 6 else 9] == protocol and packet[at] in types


def arrives(source: Host, frame: bytes, sink: Host, target: str, within_s: float = PATIENCE_S) -> bool:
    """Whether a packet for `target`, other than an echo, that `source` sends in a frame comes out at `sink`."""
    with listening(sink) as out, listening(source) as into:
        with contextlib.suppress(OSError):  # a cable without carrier accepts nothing
            into.send(frame)
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            got = out.receive(left)
            if got and carries(got, target) and not is_echo(got):
                return True
    return False


def vanishes(source: Host, frame: bytes, sink: Host, target: str) -> bool:
    """Whether it does not arrive for a moment."""
    return not arrives(source, frame, sink, target, MOMENT_S)


class listening:  # noqa: N801 # reads as a method
    """A packet socket on a host for the duration of a block."""

    def __init__(self, host: Host) -> None:
        self._wire = host.wire()

    def __enter__(self) -> Wire:
        return self._wire

    def __exit__(self, *_: object) -> None:
        self._wire.close()


class Only(Wire):
    """A wire that only reports packets to one address."""

    def __init__(self, wire: Wire, target: str) -> None:
        self._wire, self._target = wire, target

    def drain(self) -> list[bytes]:
        """Those received so far."""
        return [frame for frame in self._wire.drain() if carries(frame, self._target)]
