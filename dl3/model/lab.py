"""A lab as a value: what is connected with what. It is built, drawn and recorded from the same value.

VM1 -- vnet0 | br0 | vnet1 -- VM2 -- vnet2 | br1 | vnet3 -- VM1
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Literal

from pydantic import Field

from dl3.model.noun import Noun

Accelerator = Literal["kvm", "tcg", "none"]  # none: programs of this machine in place of guests
Switch = Literal["linux", "dl3d", "ovs", "vrouters", "linux-router", "dl3d-router", "dl3d-hosts"]
Wire = Literal["tap", "vhost", "veth"]
WIRES: Mapping[Switch, Wire] = {"linux": "tap", "linux-router": "tap", "dl3d-hosts": "veth"}  # the others: vhost
VM1, VM2 = "VM1", "VM2"
RING = 256  # descriptors of a virtio ring, as in QEMU
BACK = " back"  # the name of a place that is passed a second time ends with it


class Card(Noun):
    """A network card of a station, with the port at its other end."""

    port: str  # of a node: 'vnet0'
    mac: str


class Station(Noun):
    """What sends, forwards or receives: a guest, or a program of this machine."""

    name: str
    program: str
    is_guest: bool = False
    n_cpus: int = 0  # of a guest
    memory_mib: int = 0  # of a guest
    cards: tuple[Card, ...] = Field(min_length=1)  # frames leave a sender by the first, and enter others by the first
    part_of: str = ""  # the station whose program this one is a part of


class Leg(Noun):
    """The way through one node: a bridge or a router."""

    enters: str  # port
    node: str
    leaves: str  # port
    to: str = ""  # the station at the port that frames leave by; '': a cable to the port that the next leg enters by


class Place(Noun):
    """Where frames can be lost."""

    kind: Literal["tx", "rx", "inside", "in", "node", "out"]
    of: str  # a station, a port or a node
    key: str  # unique in a topology
    to: str = ""  # of 'out': the station or the port that follows


class Topology(Noun):
    """Stations, and the way that each frame takes between them."""

    lab: str
    switch: Switch
    accelerator: Accelerator
    stations: tuple[Station, ...] = Field(min_length=1)  # the first one sends
    legs: tuple[Leg, ...] = Field(min_length=1)
    stream: Mapping[str, object] = Field(default_factory=dict)  # what is sent, in dl3gen's words
    ring: int = RING  # descriptors of a card that is not a guest's
    short_queue: str = ""  # a port or a station

    @property
    def wire(self) -> Wire:
        """What the ports of the nodes are."""
        return WIRES.get(self.switch, "vhost")

    @property
    def guests(self) -> tuple[Station, ...]:
        """Those of the stations that QEMU runs."""
        return tuple(station for station in self.stations if station.is_guest)

    @property
    def is_emulated(self) -> bool:
        """Whether each instruction of a guest is emulated: rates then say nothing about real ones."""
        return self.accelerator == "tcg" and bool(self.guests)

    @property
    def sender(self) -> Station:
        """The station that sends."""
        return self.stations[0]

    @property
    def receiver(self) -> Station:
        """The station at the end of the way; may be the sender."""
        return self.station(self.legs[-1].to)

    @property
    def middle(self) -> tuple[Station, ...]:
        """The stations that forward."""
        return tuple(self.station(leg.to) for leg in self.legs[:-1] if leg.to)

    @property
    def program(self) -> str:
        """What forwards: in the station on the way, or at the node."""
        return self.middle[0].program if self.middle else self.legs[0].node

    def station(self, name: str) -> Station:
        """A station by its name."""
        return next(station for station in self.stations if station.name == name)

    @property
    def nodes(self) -> dict[str, tuple[str, ...]]:
        """The ports of each node, in the order in which a frame passes them."""
        found: dict[str, dict[str, None]] = {}
        for leg in self.legs:
            found.setdefault(leg.node, {}).update(dict.fromkeys((leg.enters, leg.leaves)))
        return {node: tuple(ports) for node, ports in found.items()}

    def card(self, port: str) -> Card:
        """The card at a port."""
        return next(card for station in self.stations for card in station.cards if card.port == port)

    def places(self) -> list[Place]:
        """In the order in which a frame passes them."""
        return [*self._places()]

    def _places(self) -> Iterator[Place]:
        seen: set[str] = set()
        yield Place(kind="tx", of=self.sender.name, key=f"{self.sender.name} tx")
        for leg, after in zip(self.legs, (*self.legs[1:], None), strict=True):
            to = leg.to or (after.enters if after else "")
            for kind, of in (("in", leg.enters), ("node", leg.node), ("out", leg.leaves)):
                key = f"{of}{BACK}" if of in seen else of
                seen.add(of)
                yield Place.model_validate({"kind": kind, "of": of, "key": key, "to": to if kind == "out" else ""})
            if leg.to:
                yield Place(kind="rx", of=leg.to, key=f"{leg.to} rx")
            if leg.to and after:
                yield Place(kind="inside", of=leg.to, key=leg.to)


class Hop(Noun):
    """What came to a place and what went on, in frames. The difference is lost there."""

    place: str  # its key
    came: int
    went: int
    named: Mapping[str, int] = Field(default_factory=dict)  # counters that say how many were lost here

    @property
    def lost(self) -> int:
        """Frames; negative if more went on than came."""
        return self.came - self.went

    @property
    def unnamed(self) -> int:
        """Lost frames that no counter names."""
        return self.lost - sum(self.named.values())


class LabRun(Noun):
    """One load of a lab."""

    kind: Literal["lab"] = "lab"
    at: str
    campaign: str
    topology: Topology
    frame: str
    asked_pps: float
    seconds: float
    late: int = 0  # frames that the generator skipped because it was late: they were not sent
    p50_ns: float = 0.0  # median time from the sender to the receiver; 0: not measured
    hops: tuple[Hop, ...] = Field(min_length=1)
    facts: dict[str, object]

    @property
    def sent(self) -> int:
        """Frames."""
        return self.hops[0].came

    @property
    def received(self) -> int:
        """Frames that came to the end of the way."""
        return self.hops[-1].went

    @property
    def ratio(self) -> float:
        """Lost frames divided by those that were sent."""
        return (self.sent - self.received) / self.sent if self.sent else 0.0

    @property
    def is_chain(self) -> bool:
        """Whether what goes on from each place comes to the next: the losses then add up to sent minus received."""
        return all(one.went == other.came for one, other in pairwise(self.hops))

    def lost_at(self, places: tuple[str, ...]) -> int:
        """Frames lost at these places."""
        return sum(hop.lost for hop in self.hops if hop.place in places)

    def ratio_at(self, places: tuple[str, ...]) -> float:
        """Those divided by what came to the first of these places."""
        came = next((hop.came for hop in self.hops if hop.place == places[0]), 0)
        return self.lost_at(places) / came if came else 0.0
