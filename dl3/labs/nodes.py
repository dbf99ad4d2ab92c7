"""How the nodes of a lab are started, and how their counters are read, for each kind of switch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dl3.lab.kept import Place
from dl3.lab.pair import TOP
from dl3.lab.single import built
from dl3.lab.stations import SwitchCounts
from dl3.lab.switches import join_linux, lay_linux, read_linux, read_switch, start_dl3d
from dl3.labs.laptop import lay_hosts
from dl3.labs.ovs_switch import read_ovs, start_ovs
from dl3.labs.vrouters import read_vrouters, start_vrouters
from dl3.model.lab import Switch, Topology


def no_join(_topology: Topology, _place: Place) -> None:
    """Nothing is left to do."""


@dataclass(frozen=True)
class Nodes:
    """`join`: after programs in place of guests have made their interfaces."""

    start: Callable[[Topology, Place, bool], None]  # the flag: it stays
    read: Callable[[Topology, Place], SwitchCounts]
    join: Callable[[Topology, Place], None] = no_join


def dl3d(topology: Topology, place: Place, stays: bool) -> None:
    """As a bridge or a router."""
    start_dl3d(topology, place, built(TOP / "build" / "src" / "dl3d"), stays)


def vrouters(topology: Topology, place: Place, stays: bool) -> None:
    """Two dl3d."""
    start_vrouters(topology, place, built(TOP / "build" / "src" / "dl3d"), stays)


def hosts(topology: Topology, place: Place, stays: bool) -> None:
    """dl3d between the namespaces of hosts."""
    lay_hosts(topology, place)
    dl3d(topology, place, stays)


LINUX = Nodes(
    start=lambda topology, place, _: lay_linux(topology, place.namespace),
    read=lambda _, place: read_linux(place.namespace),
    join=lambda topology, place: join_linux(topology, place.namespace),
)
NODES: Mapping[Switch, Nodes] = {
    "linux": LINUX,
    "linux-router": LINUX,
    "dl3d": Nodes(dl3d, read_switch),
    "dl3d-router": Nodes(dl3d, read_switch),
    "dl3d-hosts": Nodes(hosts, read_switch),
    "ovs": Nodes(start_ovs, read_ovs),
    "vrouters": Nodes(vrouters, read_vrouters),
}
