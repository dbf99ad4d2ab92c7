"""What a lab is: the topologies that it measures one after the other, and their loads. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dl3.lab.links import DUT_MACS, FIRST_HOSTS, GENERATOR_MACS
from dl3.model.lab import RING, Accelerator, Card, Station, Topology
from dl3.model.noun import Noun

Generator = Literal["dl3gen", "pktgen"]
Forwarder = Literal["l2fwd", "testpmd", "dl3d"]
MEMORY_MIB = 1280
PAGES = 256  # of 2 MiB, in a guest
SHORT_RING = 64  # descriptors of a guest's card
LONG_RING = 16_384  # of programs that share cores: a pause of some ms is no loss
SMALL = 64  # bytes, with FCS
KERNELS = ("pktgen", "Linux", "ping")  # programs that are no files: kernels do their work


class Settings(Noun):
    """What was asked for."""

    switch: str = ""  # '': each one that the lab has
    path: str = ""  # '': each one that the lab has
    generator: Generator = "dl3gen"
    forwarder: Forwarder = "l2fwd"
    n_cpus: int = 2
    short_queue: str = ""
    frame_bytes: int = 0  # 0: those of the lab
    rates_pps: tuple[int, ...] = ()  # empty: those of the lab
    seconds: float = 0.0  # of each load; 0: as the lab has it


class Load(Noun):
    """Frames of one size at a rate."""

    frame_bytes: int
    pps: int


def loads_of(*rates: int, size: int = SMALL) -> tuple[Load, ...]:
    """One size at several rates."""
    return tuple(Load(frame_bytes=size, pps=pps) for pps in rates)


# An emulated guest needs about 20 us for a frame, so the last one is too much on purpose.
EMULATED = loads_of(2_000, 10_000, 50_000)
REAL = loads_of(100_000, 300_000, 1_000_000)
SECONDS: Mapping[Accelerator, float] = {"tcg": 5.0, "kvm": 10.0, "none": 10.0}  # the KVM report counted for 10 s


@dataclass(frozen=True)
class Kind:
    """A lab by its name."""

    name: str
    topologies: Callable[[Settings, Accelerator], tuple[Topology, ...]]
    n_guests: int = 0  # most at the same time; 0: it has none
    loads: Mapping[Accelerator, tuple[Load, ...]] = field(
        default_factory=lambda: {"tcg": EMULATED, "kvm": REAL, "none": REAL}
    )
    seconds: Mapping[Accelerator, float] = field(default_factory=lambda: SECONDS)

    def loads_for(self, asked: Settings, topology: Topology) -> tuple[Load, ...]:
        """Those that are asked for; else those of the lab, which are smaller if a guest is emulated."""
        own = self.loads["tcg" if topology.is_emulated else "none" if not topology.guests else "kvm"]
        if not (asked.rates_pps or asked.frame_bytes):
            return own
        sizes = (asked.frame_bytes,) if asked.frame_bytes else tuple(dict.fromkeys(load.frame_bytes for load in own))
        rates = asked.rates_pps or tuple(dict.fromkeys(load.pps for load in own))
        return tuple(Load(frame_bytes=size, pps=pps) for size in sizes for pps in rates)

    def seconds_for(self, asked: Settings, topology: Topology) -> float:
        """Of each load."""
        return asked.seconds or self.seconds["tcg" if topology.is_emulated else "none"]


def chosen(asked: str, every: Sequence[str]) -> Sequence[str]:
    """The one that is asked for, else each."""
    return (asked,) if asked else every


def guest(name: str, program: str, settings: Settings, accelerator: Accelerator, *cards: Card) -> Station:
    """A guest, or a program of this machine in its place."""
    if accelerator == "none":
        return Station(name=name, program=program, cards=cards)
    return Station(
        name=name, program=program, is_guest=True, n_cpus=settings.n_cpus, memory_mib=MEMORY_MIB, cards=cards
    )


def bench(first: str, second: str = "") -> Station:
    """dl3gen on this machine, which sends at one port and receives at the other, or at the same."""
    names = (first, second) if second else (first,)
    cards = tuple(Card(port=port, mac=mac) for port, mac in zip(names, GENERATOR_MACS, strict=False))
    return Station(name="tester", program="dl3gen", cards=cards)


def routed() -> dict[str, object]:
    """Packets from the network behind the first port to that behind the second one."""
    return {
        "src_mac": GENERATOR_MACS[0],
        "dst_mac": DUT_MACS[0],
        "src_ip": FIRST_HOSTS[0],
        "dst_ip": FIRST_HOSTS[1],
    }


def ring_keys(topology: Topology, station: Station) -> dict[str, int]:
    """Rings of a station's cards that are not as usual. Linux's queue towards a guest is that of its TAP interface, that of
    a switch with vhost-user is the guest's receive ring.
    """
    found = (
        {}
        if topology.ring == RING or topology.wire == "tap"
        else {"rx_descriptors": topology.ring, "tx_descriptors": topology.ring}
    )
    place = topology.short_queue
    if place and place == station.name:
        return found | {"tx_descriptors": SHORT_RING}
    if topology.wire == "vhost" and place in [card.port for card in station.cards]:
        return found | {"rx_descriptors": SHORT_RING}
    return found


def devices_of(topology: Topology, station: Station, folder: Path) -> list[str]:
    """The cards of a program of this machine: the other ends of vhost-user sockets, or TAP interfaces."""
    cards = [card for one in topology.stations if station.name in (one.name, one.part_of) for card in one.cards]
    if topology.wire == "tap":
        return [f"net_tap{n},iface={card.port},mac={card.mac}" for n, card in enumerate(cards)]
    where = "path={folder}/{port}.sock,server=1,queues=1,queue_size={ring},mac={mac}"
    return [
        f"net_virtio_user{n},{where.format(folder=folder, port=card.port, mac=card.mac, ring=topology.ring)}"
        for n, card in enumerate(cards)
    ]


def start_options(topology: Topology, station: Station, binary: Path) -> dict[str, Any]:
    """What the agent of a station is given to start its program."""
    if station.program in KERNELS:
        return {}
    if station.program == "l2fwd":
        return {"binary": str(binary)}  # its rings are compiled in
    is_end = station.name == topology.receiver.name and station.name != topology.sender.name
    mode = {"mode": "rxonly"} if station.program == "testpmd" and is_end else {}
    return {"binary": str(binary), "keys": ring_keys(topology, station), **mode}
