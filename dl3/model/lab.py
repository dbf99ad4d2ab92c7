"""A lab as a value: what is connected with what. It is built, drawn and recorded from the same value.

VM1 -- vnet0 | br0 | vnet1 -- VM2 -- vnet2 | br1 | vnet3 -- VM1
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

from pydantic import Field

from dl3.model.noun import Noun

Accelerator = Literal["kvm", "tcg", "none"]  # none: programs of this machine in place of guests
Switch = Literal["linux", "dl3d"]
VM1, VM2 = "VM1", "VM2"
# The places where frames can be lost, in the order in which a frame passes them; 'vnet1' is the queue towards VM2.
PLACES = ("VM1 tx", "vnet0", "br0", "vnet1", "VM2 rx", "VM2", "vnet2", "br1", "vnet3", "VM1 rx")
THERE, INSIDE, BACK = PLACES[:5], PLACES[5:6], PLACES[6:]
QUEUES = ("vnet1", "VM2", "vnet3")  # those that can be shortened


class Card(Noun):
    """A network card of a guest, with the port of a bridge at its other end."""

    port: str  # of the bridge: 'vnet0'
    mac: str
    bridge: str


class Vm(Noun):
    """A guest."""

    name: str
    program: str  # what generates or forwards in it
    n_cpus: int
    memory_mib: int
    cards: tuple[Card, Card]  # frames leave VM1 by the first and enter VM2 by the first


class Topology(Noun):
    """Two guests and the bridges between them."""

    lab: str
    switch: Switch
    accelerator: Accelerator
    vms: tuple[Vm, Vm]
    bridges: tuple[str, str]  # on the way there, on the way back
    short_queue: str = ""  # one of QUEUES

    @property
    def is_emulated(self) -> bool:
        """Whether each instruction of a guest is emulated: rates then say nothing about real ones."""
        return self.accelerator == "tcg"

    @property
    def has_guests(self) -> bool:
        """Whether VM1 and VM2 are guests, not programs of this machine."""
        return self.accelerator != "none"

    def vm(self, name: str) -> Vm:
        """A guest by its name."""
        return next(vm for vm in self.vms if vm.name == name)

    def ports_of(self, bridge: str) -> tuple[str, ...]:
        """The ports of a bridge, in the order of their numbers."""
        return tuple(sorted(card.port for vm in self.vms for card in vm.cards if card.bridge == bridge))


class Hop(Noun):
    """What came to a place and what went on, in frames. The difference is lost there."""

    place: str  # one of PLACES
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
    p50_ns: float = 0.0  # median time from VM1 to VM1; 0: not measured
    hops: tuple[Hop, ...] = Field(min_length=1)
    facts: dict[str, object]

    @property
    def sent(self) -> int:
        """Frames."""
        return self.hops[0].came

    @property
    def received(self) -> int:
        """Frames that came back."""
        return self.hops[-1].went

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
