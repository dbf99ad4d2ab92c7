"""The nodes of a lab, bridges or routers: Linux with TAP interfaces, or dl3d with vhost-user ports or on veth links."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from dl3.control.client import Client
from dl3.control.replies import Ports, Workers
from dl3.host.cores import usable
from dl3.lab.command import run
from dl3.lab.kept import Place, start
from dl3.lab.links import DUT_ADDRESSES, DUT_MACS, GENERATOR_ADDRESSES, GENERATOR_MACS, NETWORKS
from dl3.lab.namespace import Namespace
from dl3.lab.single import is_ready
from dl3.lab.stations import PortCounts, SwitchCounts
from dl3.model.fault import UsageFault
from dl3.model.lab import Leg, Topology

SHORT_QUEUE = 8  # frames of a TAP interface; Linux's default is 1,000
QUIET = ("net.ipv4.ip_forward=0", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
NETFILTER = Path("/proc/sys/net/bridge")  # bridges pass frames through iptables
READY_S = 120.0
NOT_LOST = ("forward",)
VETH_FRAMES = 4096  # of a packet socket


def lay_linux(topology: Topology, namespace: Namespace) -> None:
    """A namespace in which Linux sends nothing itself, with bridges; for guests also with TAP interfaces."""
    run(["ip", "netns", "add", namespace.name])
    filters = [f"net.bridge.bridge-nf-call-{name}=0" for name in ("iptables", "ip6tables", "arptables")]
    namespace.run("sysctl", "-qw", *QUIET, *(filters if NETFILTER.exists() else ()))  # which drops without counting
    for node in topology.nodes if topology.switch == "linux" else ():
        namespace.ip("link", "add", "name", node, "type", "bridge", "mcast_snooping", "0")
        namespace.ip("link", "set", "dev", node, "arp", "off", "up")
    if topology.guests:
        for ports in topology.nodes.values():
            for port in ports:
                namespace.ip("tuntap", "add", "dev", port, "mode", "tap")
        join_linux(topology, namespace)


def join_linux(topology: Topology, namespace: Namespace) -> None:
    """TAP interfaces that exist become ports of their bridges, or of the router that Linux is."""
    for node, ports in topology.nodes.items():
        for port in ports:
            queue = ("txqueuelen", str(SHORT_QUEUE)) if topology.short_queue == port else ()
            of = ("master", node) if topology.switch == "linux" else ()
            namespace.ip("link", "set", "dev", port, *of, "arp", "off", *queue, "up")
    if topology.switch == "linux-router":
        namespace.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
        for n, (port, address) in enumerate(zip(*topology.nodes.values(), DUT_ADDRESSES, strict=False)):
            namespace.ip("address", "add", address, "dev", port)
            namespace.ip("neighbour", "add", GENERATOR_ADDRESSES[n], "lladdr", GENERATOR_MACS[n], "dev", port)
            namespace.ip("route", "add", NETWORKS[n], "via", GENERATOR_ADDRESSES[n])


def linux_counts(links: list[dict[str, Any]]) -> SwitchCounts:
    """From 'ip -json -stats link show'. What Linux counts as dropped is not in its packets."""
    found = {}
    for link in links:
        one = link["stats64"]
        lost_in = {"rx_dropped": one["rx"]["dropped"] + one["rx"]["errors"]}
        lost_out = {"tx_dropped": one["tx"]["dropped"] + one["tx"]["errors"]}
        found[link["ifname"]] = PortCounts(one["rx"]["packets"], one["tx"]["packets"], lost_in, lost_out)
    return SwitchCounts(found)


def read_linux(namespace: Namespace) -> SwitchCounts:
    """The counters now."""
    return linux_counts(json.loads(namespace.ip("-json", "-stats", "link", "show")))


def roles(topology: Topology) -> dict[str, Any]:
    """What dl3d does with its ports: it is a bridge for each node, or a router."""
    if topology.switch == "dl3d":
        return {"bridges": [{"name": node, "ports": list(ports)} for node, ports in topology.nodes.items()]}
    (ports,) = topology.nodes.values()
    ends = [*zip(ports, NETWORKS, GENERATOR_ADDRESSES, GENERATOR_MACS, strict=True)]
    return {
        "routes": [f"{network} via {host} dev {port}" for port, network, host, _ in ends],
        "neighbours": [f"{host} lladdr {mac} dev {port}" for port, _, host, mac in ends],
    }


def queues_of(leg: Leg, topology: Topology) -> list[str]:
    """What the worker of a leg polls: the port that frames enter by, and one that they only leave by."""
    entered = [one.enters for one in topology.legs]
    return [
        f"{port}/0" for port in dict.fromkeys((leg.enters, leg.leaves)) if port == leg.enters or port not in entered
    ]


def port_of(name: str, number: int, topology: Topology, folder: Path) -> dict[str, Any]:
    """A port of dl3d: a vhost-user socket, or its end of a veth link."""
    if topology.wire == "veth":
        port: dict[str, Any] = {
            "name": name,
            "device": f"net_af_packet{number},iface={name},framesz=2048,framecnt={VETH_FRAMES}",
        }
    else:
        port = {"name": name, "vhost": {"socket": str(folder / f"{name}.sock")}}
    return port if topology.switch == "dl3d" else port | {"mac": DUT_MACS[number], "addresses": [DUT_ADDRESSES[number]]}


def dl3d_config(topology: Topology, folder: Path, cores: Sequence[int]) -> dict[str, Any]:
    """One worker for each leg, so that verdicts are counted for each."""
    names = [name for ports in topology.nodes.values() for name in ports]
    return {
        "ports": [port_of(name, number, topology, folder) for number, name in enumerate(names)],
        **roles(topology),
        "workers": [
            {"core": core, "queues": queues_of(leg, topology)} for core, leg in zip(cores, topology.legs, strict=True)
        ],
        "memory": {"hugepages": "never"},
        "control": {"socket": str(folder / "dl3d.sock")},
    }


def read_dl3d(client: Client) -> tuple[Ports, Workers]:
    """The counters of a dl3d now."""
    return client.ask(Ports, "ports"), client.ask(Workers, "workers")


def dl3d_counts(
    legs: Sequence[Leg], found: tuple[Ports, Workers], renamed: Mapping[str, str], keys: Sequence[str]
) -> SwitchCounts:
    """`tx_refused` is the ring behind the port that was full: the worker of a leg sends only to where that leaves.
    `keys`: of the places of the legs' nodes.
    """
    nodes, refused = {}, {}
    for leg, key, worker in zip(legs, keys, found[1].workers, strict=True):
        drops = {name: n for name, n in worker.verdicts.items() if name not in NOT_LOST and n}
        refused[leg.leaves] = {"tx_refused": drops.pop("tx_refused", 0)}
        nodes[key] = drops
    ports = {}
    for port in found[0].ports:
        name = renamed.get(port.name, port.name)
        lost_in = {"rx_missed": (port.rx_missed or 0) + (port.rx_errors or 0)}
        ports[name] = PortCounts(port.rx_packets, port.tx_packets, lost_in, refused.get(name, {}))
    return SwitchCounts(ports, nodes)


def start_dl3d(topology: Topology, place: Place, program: Path, stays: bool) -> None:
    """dl3d with its sockets in the lab's folder; guests may start before or after."""
    cores = list(usable())[: len(topology.legs)]
    if len(cores) < len(topology.legs):
        raise UsageFault(f"dl3d as the switch needs {len(topology.legs)} cores, one for each way: use another switch")
    file = place.folder / "dl3d.yaml"
    file.write_text(yaml.safe_dump(dl3d_config(topology, place.folder, cores), sort_keys=False), encoding="utf-8")
    command = [str(program), str(file)]
    inside = place.namespace.command(*command) if topology.wire == "veth" else command
    started = start(place, "dl3d", inside, stays)
    client = Client(place.folder / "dl3d.sock")
    started.wait_until(partial(is_ready, client), "get ready", READY_S)


def read_switch(topology: Topology, place: Place) -> SwitchCounts:
    """The counters of dl3d, whatever it is here."""
    found = read_dl3d(Client(place.folder / "dl3d.sock", 30.0))
    keys = [one.key for one in topology.places() if one.kind == "node"]
    return dl3d_counts(topology.legs, found, {}, keys)
