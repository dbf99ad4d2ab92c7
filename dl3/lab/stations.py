"""From counters to hops: what came to each place on the way of a frame, what went on, and which counter names the rest.

Pure. Counters of all switches have the same form, so that one table fits both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dl3.model.lab import Hop, Leg, Topology


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
    """Of all ports, and of what each node dropped by name."""

    ports: Mapping[str, PortCounts]
    nodes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by the key of the place

    def since(self, before: "SwitchCounts") -> "SwitchCounts":
        """The rise."""
        ports = {name: port.since(before.ports.get(name, PortCounts())) for name, port in self.ports.items()}
        nodes = {name: rise(drops, before.nodes.get(name, {})) for name, drops in self.nodes.items()}
        return SwitchCounts(ports, nodes)


@dataclass(frozen=True)
class Sender:
    """Frames of one run. `sent` includes those that its card refused."""

    sent: int
    refused: int
    came: int
    missed: int


@dataclass(frozen=True)
class Middle:
    """A station that is not the sender."""

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


def way(leg: Leg, keys: Sequence[str], switch: SwitchCounts, came: int) -> Iterator[Hop]:
    """The places of a leg: into the first port, through the node, out of the second port."""
    first, second = switch.ports[leg.enters], switch.ports[leg.leaves]
    handed = second.sent + sum(second.lost_out.values())
    yield Hop(place=keys[0], came=came, went=first.received, named=first.lost_in)
    yield Hop(place=keys[1], came=first.received, went=handed, named=switch.nodes.get(keys[1], {}))
    yield Hop(place=keys[2], came=handed, went=second.sent, named=second.lost_out)


def hops(topology: Topology, sender: Sender, switch: SwitchCounts, others: Mapping[str, Middle]) -> tuple[Hop, ...]:
    """All places in the order in which a frame passes them. `others`: the stations that count for themselves."""
    return tuple(_hops(topology, sender, switch, others))


def _hops(topology: Topology, sender: Sender, switch: SwitchCounts, others: Mapping[str, Middle]) -> Iterator[Hop]:
    places = iter(topology.places())
    came = sender.sent - sender.refused
    yield Hop(place=next(places).key, came=sender.sent, went=came, named=named("refused", sender.refused))
    for leg in topology.legs:
        yield from way(leg, [next(places).key for _ in range(3)], switch, came)
        came = switch.ports[leg.leaves].sent
        if not leg.to:
            continue
        other, is_end = others.get(leg.to), leg is topology.legs[-1]
        there = other or Middle(sender.came, sender.missed, 0, 0)
        yield Hop(place=next(places).key, came=came, went=there.came, named=named("imissed", there.missed))
        if not is_end:
            yield Hop(place=next(places).key, came=there.came, went=there.sent, named=named("dropped", there.dropped))
            came = there.sent


def is_explained(found: Sequence[Hop]) -> bool:
    """Whether each frame went on or was named: nothing is under way."""
    return all(hop.unnamed == 0 for hop in found)
