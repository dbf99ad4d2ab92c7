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
PATIENCE_S = 60.0
ECHO_S, N_ECHOES = 2.0, 5
ICMP = {4: 1, 6: 58}
IP_TYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}
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


def kind_of(frame: bytes) -> tuple[int, int]:
    """Protocol and, of ICMP, type of an IP packet without options; (0, 0) for other frames, tagged ones among them."""
    packet = frame[ETHERNET_BYTES:]
    version = packet[0] >> 4
    if frame[12:14] != IP_TYPES.get(version):
        return (0, 0)
    protocol, at = (packet[6], 40) if version == 6 else (packet[9], 20)
    return (protocol, packet[at] if protocol == ICMP[version] else 0)


def arrives(source: Host, frame: bytes, sink: Host, target: str, within_s: float = PATIENCE_S) -> bool:
    """Whether a packet for `target` that `source` sends in a frame comes out at `sink`.

    Packets of another kind are not it: late echoes of an earlier step, or a neighbour solicitation.
    """
    kind = kind_of(frame)
    with listening(sink) as out, listening(source) as into:
        with contextlib.suppress(OSError):  # a cable without carrier accepts nothing
            into.send(frame)
        deadline = time.monotonic() + within_s
        while (left := deadline - time.monotonic()) > 0:
            got = out.receive(left)
            if got and carries(got, target) and kind in ((0, 0), kind_of(got)):
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
