"""The lab of the white paper's switches: Open vSwitch and dl3d, from port to port and through a guest. Pure."""

from collections.abc import Iterator
from typing import cast

from dl3.lab.kind import LONG_RING, Kind, Settings, bench, chosen, guest, loads_of
from dl3.lab.links import NAMES
from dl3.model.lab import RING, VM1, Accelerator, Card, Leg, Station, Switch, Topology

NAME = "white-paper-vswitch"
SWITCHES = ("ovs", "dl3d")
PATHS = ("port-to-port", "one-link", "two-links")  # the last two through a guest: links that it has
CARDS = (Card(port="vnet1", mac="02:00:00:00:02:01"), Card(port="vnet2", mac="02:00:00:00:02:02"))
LEFT, RIGHT = NAMES


def legs_of(path: str) -> tuple[Leg, ...]:
    """One bridge, or one for each way."""
    if path == "port-to-port":
        return (Leg(enters=LEFT, node="br0", leaves=RIGHT, to="tester"),)
    if path == "one-link":
        back = Leg(enters="vnet1", node="br0", leaves=LEFT, to="tester")
    else:
        back = Leg(enters="vnet2", node="br1", leaves=RIGHT, to="tester")
    return (Leg(enters=LEFT, node="br0", leaves="vnet1", to=VM1), back)


def stations_of(path: str, settings: Settings, accelerator: Accelerator) -> Iterator[Station]:
    """The tester, which is never a guest, and VM1."""
    yield bench(LEFT, "" if path == "one-link" else RIGHT)
    if path != "port-to-port":
        yield guest(VM1, "testpmd", settings, accelerator, *(CARDS[:1] if path == "one-link" else CARDS))


def topology_of(switch: str, path: str, settings: Settings, accelerator: Accelerator) -> Topology:
    """One switch and one path."""
    # from port to port each frame has the address of the tester's other card, so that a bridge learns nothing wrong
    to = CARDS[0] if path != "port-to-port" else bench(LEFT, RIGHT).cards[1]
    stations = tuple(stations_of(path, settings, accelerator))
    return Topology(
        lab=NAME,
        switch=cast(Switch, switch),
        accelerator=accelerator,
        stations=stations,
        legs=legs_of(path),
        stream={"dst_mac": to.mac},
        ring=LONG_RING if path == "port-to-port" else RING,
    )


def topologies(settings: Settings, accelerator: Accelerator) -> tuple[Topology, ...]:
    """Each path with each switch."""
    every = [(switch, path) for path in chosen(settings.path, PATHS) for switch in chosen(settings.switch, SWITCHES)]
    return tuple(topology_of(switch, path, settings, accelerator) for switch, path in every)


SIZE = 66  # bytes, the shortest frame of the white paper
REAL = loads_of(100_000, 300_000, 1_000_000, size=SIZE)
VSWITCH = Kind(
    NAME,
    topologies,
    n_guests=1,
    loads={"tcg": loads_of(2_000, 10_000, 50_000, size=SIZE), "kvm": REAL, "none": REAL},
)
