"""The lab of the notes on kernel forwarding: Linux and dl3d as a bridge and as a router. Pure."""

from dl3.lab.kind import LONG_RING, Kind, Settings, bench, chosen, loads_of, routed
from dl3.lab.links import DUT_MACS, FIRST_HOSTS, NAMES
from dl3.model.lab import Accelerator, Card, Leg, Switch, Topology

NAME = "kernel-notes"
SWITCHES = ("linux", "dl3d")
PATHS = ("L2", "L3")
MANY = 20_000  # addresses
LEFT, RIGHT = NAMES
KINDS: dict[tuple[str, str], Switch] = {
    ("L2", "linux"): "linux",
    ("L2", "dl3d"): "dl3d",
    ("L3", "linux"): "linux-router",
    ("L3", "dl3d"): "dl3d-router",
}


def topology_of(path: str, switch: str, accelerator: Accelerator) -> Topology:
    """From port to port."""
    station = bench(LEFT, RIGHT)
    if switch == "linux":  # the interface of a card is Linux's, and so is its address
        cards = tuple(Card(port=card.port, mac=mac) for card, mac in zip(station.cards, DUT_MACS, strict=True))
        station = station.model_copy(update={"cards": cards})
    many = {"dst_ip": {"first": FIRST_HOSTS[1], "count": MANY}, "flows": MANY}
    frames = {"dst_mac": bench(LEFT, RIGHT).cards[1].mac} if path == "L2" else {}
    return Topology(
        lab=NAME,
        switch=KINDS[path, switch],
        accelerator=accelerator,
        stations=(station,),
        legs=(Leg(enters=LEFT, node="br0" if path == "L2" else "router", leaves=RIGHT, to=station.name),),
        stream=routed() | many | frames,
        ring=LONG_RING,
    )


def topologies(settings: Settings, accelerator: Accelerator) -> tuple[Topology, ...]:
    """A bridge and a router, each by Linux and by dl3d."""
    every = [(path, switch) for path in chosen(settings.path, PATHS) for switch in chosen(settings.switch, SWITCHES)]
    return tuple(topology_of(path, switch, accelerator) for path, switch in every)


KERNEL_NOTES = Kind(NAME, topologies, loads={"none": loads_of(100_000, 300_000, 1_000_000)})
