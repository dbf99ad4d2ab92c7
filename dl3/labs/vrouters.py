"""Two dl3d as the vRouters of a lab: the port of a VM by vhost-user, and the underlay."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import yaml

from dl3.control.client import Client
from dl3.dut.vrouters import Vrouter
from dl3.host.cores import usable
from dl3.lab.endpoint import Endpoint
from dl3.lab.kept import Place, start
from dl3.lab.single import is_ready
from dl3.lab.stations import PortCounts, SwitchCounts
from dl3.lab.switches import READY_S, dl3d_counts, read_dl3d
from dl3.lab.vhost import Vhost
from dl3.model.lab import Topology

MEMORY_MIB = 1024  # of both


def vrouter(topology: Topology, host: int, folder: Path) -> Vrouter:
    """One of them; both are on the second core, so that the first is left to dl3gen."""
    core = (*usable(), *usable())[1]
    return Vrouter(host, Endpoint(Vhost(folder, topology.ring), (core,), 64, MEMORY_MIB, 4, descriptors=topology.ring))


def config(topology: Topology, host: int, folder: Path) -> dict[str, object]:
    """That of the vrouters as a device under test, but QEMU creates the socket, so that either side may start first."""
    own = vrouter(topology, host, folder)
    vm, underlay = own.ports()
    vm = {key: value for key, value in vm.items() if key not in ("device", "queues")}
    socket = {"vhost": {"socket": f"{folder}/{vm['name']}.sock"}}
    return own.file() | {"ports": [vm | socket, underlay]}


def start_vrouters(topology: Topology, place: Place, program: Path, stays: bool) -> None:
    """The one that listens first."""
    for host in range(2):
        own = vrouter(topology, host, place.folder)
        file = place.folder / f"{own.name}.yaml"
        file.write_text(yaml.safe_dump(config(topology, host, place.folder), sort_keys=False), encoding="utf-8")
        started = start(place, own.name, [str(program), str(file)], stays)
        started.wait_until(partial(is_ready, own.client), "get ready", READY_S)


def read_vrouters(topology: Topology, place: Place) -> SwitchCounts:
    """Of both; the underlay has the name of its end."""
    ports: dict[str, PortCounts] = {}
    nodes: dict[str, Mapping[str, int]] = {}
    for leg in topology.legs:
        client = Client(place.folder / f"{leg.node}.sock", 30.0)
        found = read_dl3d(client)
        renamed = {"underlay": leg.leaves if leg.to == "" else leg.enters}
        counts = dl3d_counts([leg], found, renamed, [leg.node])
        ports |= counts.ports
        nodes |= counts.nodes
    return SwitchCounts(ports, nodes)
