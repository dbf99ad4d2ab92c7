"""Open vSwitch with DPDK as the switch of a lab: a bridge for each node, and a flow for each leg."""

import re
from collections.abc import Sequence
from pathlib import Path

from dl3.dut.vswitch import SCHEMA, SERVER, SWITCH, Vswitch, needs
from dl3.host.cores import usable
from dl3.lab.command import run
from dl3.lab.kept import Place, start
from dl3.lab.stations import PortCounts, SwitchCounts
from dl3.lab.switches import QUIET, READY_S
from dl3.model.fault import UsageFault
from dl3.model.lab import Topology

MEMORY_MIB = 512
COUNTS = re.compile(r"port +(\d+): rx pkts=([\d?]+), .*?drop=([\d?]+).*?tx pkts=([\d?]+), .*?drop=([\d?]+)", re.DOTALL)


def settings(n_cores: int) -> dict[str, str]:
    """A thread on each of the first cores, and no huge pages."""
    cores = usable()[:n_cores]
    return {
        "dpdk-init": "true",
        "per-port-memory": "true",
        "pmd-cpu-mask": f"0x{sum(1 << core for core in cores):x}",
        "dpdk-lcore-mask": f"0x{1 << cores[0]:x}",
        "dpdk-extra": f'"--no-pci --no-huge --legacy-mem -m {MEMORY_MIB} --no-telemetry --file-prefix dl3-lab"',
    }


def bridges(topology: Topology, folder: Path) -> list[list[str]]:
    """Commands for ovs-vsctl. QEMU creates the sockets, so that either side may start first."""
    made = []
    for node, ports in topology.nodes.items():
        words = ["add-br", node, "--", "set", "bridge", node, "datapath_type=netdev", "fail-mode=secure"]
        for number, port in enumerate(ports, 1):
            server = f"options:vhost-server-path={folder}/{port}.sock"
            options = ("type=dpdkvhostuserclient", server, f"ofport_request={number}")
            words += ["--", "add-port", node, port, "--", "set", "Interface", port, *options]
        made.append(words)
    return made


def flows(topology: Topology) -> list[tuple[str, str]]:
    """Bridge and flow."""
    found = []
    for leg in topology.legs:
        ports = topology.nodes[leg.node]
        way = f"in_port={ports.index(leg.enters) + 1},actions=output:{ports.index(leg.leaves) + 1}"
        found.append((leg.node, way))
    return found


def start_ovs(topology: Topology, place: Place, stays: bool) -> None:
    """Its programs are those of the lab; its bridges have interfaces in Linux, so it runs in the lab's namespace."""
    if missing := needs():
        raise UsageFault(f"--switch ovs: {missing}")
    own = Vswitch(place.folder)
    run(["ip", "netns", "add", place.namespace.name])
    place.namespace.run("sysctl", "-qw", *QUIET)
    file = place.folder / "conf.db"
    run(["ovsdb-tool", "create", str(file), str(SCHEMA)])
    remote, control = f"--remote=punix:{own.database}", f"--unixctl={own.folder / SERVER}.ctl"
    server = start(place, SERVER, [SERVER, str(file), remote, control], stays)
    server.wait_until(own.database.exists, "get ready", READY_S)
    words = (f"other_config:{key}={value}" for key, value in settings(len(topology.legs)).items())
    own.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *words)
    switch = start(place, SWITCH, place.namespace.command(*own.command), stays)
    switch.wait_until(
        lambda: own.vsctl("get", "Open_vSwitch", ".", "dpdk_initialized").strip() == "true", "get ready", READY_S
    )
    for made in bridges(topology, place.folder):
        own.vsctl(*made)
    ports = {port for ports in topology.nodes.values() for port in ports}
    switch.wait_until(lambda: ports <= {*read_ovs(topology, place).ports}, "have its ports", READY_S)
    for node, flow in flows(topology):
        own.ofctl_of(node, "add-flow", flow)


def ovs_counts(text: str, ports: Sequence[str]) -> dict[str, PortCounts]:
    """From 'ovs-ofctl dump-ports'; '?' is not counted. Ports have numbers from 1; another one is the bridge's own."""

    def n(word: str) -> int:
        return int(word) if word.isdigit() else 0

    return {
        ports[int(number) - 1]: PortCounts(n(came), n(sent), {"rx_dropped": n(lost)}, {"tx_dropped": n(refused)})
        for number, came, lost, sent, refused in COUNTS.findall(text)
    }


def read_ovs(topology: Topology, place: Place) -> SwitchCounts:
    """The counters now."""
    own = Vswitch(place.folder)
    found: dict[str, PortCounts] = {}
    for node, ports in topology.nodes.items():
        found |= ovs_counts(own.ofctl_of(node, "dump-ports"), ports)
    return SwitchCounts(found)
