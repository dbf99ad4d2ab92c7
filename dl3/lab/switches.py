"""The switch of a lab: Linux's bridges with TAP interfaces, or one dl3d with vhost-user ports in their place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from dl3.control.client import Client
from dl3.control.replies import Ports, Workers
from dl3.host.cores import usable
from dl3.lab.command import run
from dl3.lab.kept import Place, Started, start
from dl3.lab.namespace import Namespace
from dl3.lab.single import is_ready
from dl3.lab.stations import PortCounts, SwitchCounts
from dl3.model.fault import UsageFault
from dl3.model.lab import Topology

SHORT_QUEUE = 8  # frames of a TAP interface; Linux's default is 1,000
QUIET = ("net.ipv4.ip_forward=0", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
NETFILTER = Path("/proc/sys/net/bridge")  # bridges pass frames through iptables
READY_S = 120.0
NOT_LOST = ("forward",)


def lay_linux(topology: Topology, namespace: Namespace) -> None:
    """Bridges and TAP interfaces in a namespace of their own, in which Linux sends nothing itself."""
    run(["ip", "netns", "add", namespace.name])
    filters = [f"net.bridge.bridge-nf-call-{name}=0" for name in ("iptables", "ip6tables", "arptables")]
    namespace.run("sysctl", "-qw", *QUIET, *(filters if NETFILTER.exists() else ()))  # which drops without counting
    for bridge in topology.bridges:
        namespace.ip("link", "add", "name", bridge, "type", "bridge", "mcast_snooping", "0")
        namespace.ip("link", "set", "dev", bridge, "arp", "off", "up")
        for port in topology.ports_of(bridge):
            namespace.ip("tuntap", "add", "dev", port, "mode", "tap")
            queue = ("txqueuelen", str(SHORT_QUEUE)) if topology.short_queue == port else ()
            namespace.ip("link", "set", "dev", port, "master", bridge, "arp", "off", *queue, "up")


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


def dl3d_config(topology: Topology, folder: Path, cores: list[int]) -> dict[str, Any]:
    """One worker for each bridge, so that verdicts are counted for each."""
    names = [name for bridge in topology.bridges for name in topology.ports_of(bridge)]
    return {
        "ports": [{"name": name, "vhost": {"socket": str(folder / f"{name}.sock")}} for name in names],
        "bridges": [{"name": bridge, "ports": list(topology.ports_of(bridge))} for bridge in topology.bridges],
        "workers": [
            {"core": core, "queues": [f"{name}/0" for name in topology.ports_of(bridge)]}
            for core, bridge in zip(cores, topology.bridges, strict=True)
        ],
        "memory": {"hugepages": "never"},
        "control": {"socket": str(folder / "dl3d.sock")},
    }


def dl3d_counts(topology: Topology, ports: Ports, workers: Workers) -> SwitchCounts:
    """`tx_refused` is the ring of a guest that was full: only frames towards the second port of a bridge are sent."""
    found, bridges = {}, {}
    for bridge, worker in zip(topology.bridges, workers.workers, strict=True):
        drops = {name: n for name, n in worker.verdicts.items() if name not in NOT_LOST and n}
        out = topology.ports_of(bridge)[1]
        refused = {"tx_refused": drops.pop("tx_refused", 0)}
        bridges[bridge] = drops
        for port in ports.ports:
            if port.name in topology.ports_of(bridge):
                lost_in = {"rx_missed": (port.rx_missed or 0) + (port.rx_errors or 0)}
                lost_out = refused if port.name == out else {}
                found[port.name] = PortCounts(port.rx_packets, port.tx_packets, lost_in, lost_out)
    return SwitchCounts(found, bridges)


def start_dl3d(topology: Topology, place: Place, program: Path, stays: bool) -> Started:
    """dl3d with its sockets in the lab's folder; guests may start before or after."""
    cores = list(usable())[: len(topology.bridges)]
    if len(cores) < len(topology.bridges):
        raise UsageFault("--switch dl3d needs two cores, one for each bridge: use --switch linux")
    file = place.folder / "dl3d.yaml"
    file.write_text(yaml.safe_dump(dl3d_config(topology, place.folder, cores), sort_keys=False), encoding="utf-8")
    started = start(place, "dl3d", [str(program), str(file)], stays)
    client = Client(place.folder / "dl3d.sock")
    started.wait_until(lambda: is_ready(client), "get ready", READY_S)
    return started


def reader(topology: Topology, place: Place) -> Callable[[], SwitchCounts]:
    """What reads the counters of the switch."""
    if topology.switch == "linux":
        return lambda: read_linux(place.namespace)
    client = Client(place.folder / "dl3d.sock", 30.0)
    return lambda: dl3d_counts(topology, client.ask(Ports, "ports"), client.ask(Workers, "workers"))
