"""From counters to hops: what came to each place on the way of a frame, what went on, and which counter names the rest.

Pure. Counters of both switches have the same form, so that one table fits both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dl3.model.lab import Hop


@dataclass(frozen=True)
class PortCounts:
    """Of a port of the switch, in frames. `lost_*`: by the name of the counter."""

    received: int = 0
    sent: int = 0
    lost_in: Mapping[str, int] = field(default_factory=dict)  # on the way into the port, not in `received`
    lost_out: Mapping[str, int] = field(default_factory=dict)  # the queue out of the port was full, not in `sent`

    def since(self, before: "PortCounts") -> "PortCounts":
        """The rise."""
        return PortCounts(
            received=self.received - before.received,
            sent=self.sent - before.sent,
            lost_in=rise(self.lost_in, before.lost_in),
            lost_out=rise(self.lost_out, before.lost_out),
        )


@dataclass(frozen=True)
class SwitchCounts:
    """Of all ports, and of what each bridge dropped by name."""

    ports: Mapping[str, PortCounts]
    bridges: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def since(self, before: "SwitchCounts") -> "SwitchCounts":
        """The rise."""
        ports = {name: port.since(before.ports.get(name, PortCounts())) for name, port in self.ports.items()}
        bridges = {name: rise(drops, before.bridges.get(name, {})) for name, drops in self.bridges.items()}
        return SwitchCounts(ports, bridges)


@dataclass(frozen=True)
class Sender:
    """VM1: frames of one run. `sent` includes those that its card refused."""

    sent: int
    refused: int
    came: int
    missed: int


@dataclass(frozen=True)
class Middle:
    """VM2."""

    came: int
    missed: int
    dropped: int
    sent: int

    def since(self, before: "Middle") -> "Middle":
        """The rise."""
        return Middle(
            came=self.came - before.came,
            missed=self.missed - before.missed,
            dropped=self.dropped - before.dropped,
            sent=self.sent - before.sent,
        )


def rise(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """The counters that rose."""
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}


def named(name: str, n: int) -> dict[str, int]:
    """A counter, if it counted anything."""
    return {name: n} if n else {}


def way(ports: Sequence[str], bridge: str, switch: SwitchCounts, came: int) -> Iterator[Hop]:
    """The places between two guests: into the first port, through the bridge, out of the second port."""
    first, second = (switch.ports[name] for name in ports)
    handed = second.sent + sum(second.lost_out.values())
    yield Hop(place=ports[0], came=came, went=first.received, named=first.lost_in)
    yield Hop(place=bridge, came=first.received, went=handed, named=switch.bridges.get(bridge, {}))
    yield Hop(place=ports[1], came=handed, went=second.sent, named=second.lost_out)


def hops(sender: Sender, switch: SwitchCounts, middle: Middle) -> tuple[Hop, ...]:
    """All places in the order in which a frame passes them."""
    left = sender.sent - sender.refused
    there, back = switch.ports["vnet1"].sent, switch.ports["vnet3"].sent
    return (
        Hop(place="VM1 tx", came=sender.sent, went=left, named=named("refused", sender.refused)),
        *way(("vnet0", "vnet1"), "br0", switch, left),
        Hop(place="VM2 rx", came=there, went=middle.came, named=named("imissed", middle.missed)),
        Hop(place="VM2", came=middle.came, went=middle.sent, named=named("dropped", middle.dropped)),
        *way(("vnet2", "vnet3"), "br1", switch, middle.sent),
        Hop(place="VM1 rx", came=back, went=sender.came, named=named("imissed", sender.missed)),
    )


def is_explained(found: Sequence[Hop]) -> bool:
    """Whether each frame went on or was named: nothing is under way."""
    return all(hop.unnamed == 0 for hop in found)
