"""Open vSwitch with DPDK: private instances of ovsdb-server and ovs-vswitchd, in their own folder and namespace.

Its ports are vhost-user: over memif it would send on a second queue, which has no peer. Its flows act like a router:
they rewrite the MAC addresses and decrement the TTL. In mode 'bridge' it is a switch: action NORMAL.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dl3.control.client import Client
from dl3.dut.vswitch import BRIDGE, OWN_BURST, SWITCH, WITH_DPDK, Vswitch, needs
from dl3.dut.wired import WiredKind
from dl3.lab.command import run
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import DUT_MACS, GENERATOR_MACS, NAMES, NETWORKS, NETWORKS_6
from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import Process, end_all
from dl3.lab.single import START_SECONDS, start_process
from dl3.model.campaign import Setup
from dl3.model.fault import Fault


def flows(mode: str) -> list[str]:
    """A switch has one flow; a router one per direction and family, and everything else is dropped."""
    if mode == "bridge":
        return ["actions=NORMAL"]
    made = []
    for out, (net4, net6) in enumerate(zip(NETWORKS, NETWORKS_6, strict=True)):
        rewrite = f"mod_dl_src:{DUT_MACS[out]},mod_dl_dst:{GENERATOR_MACS[out]},dec_ttl,output:{out + 1}"
        for match in (f"ip,nw_dst={net4}", f"ipv6,ipv6_dst={net6}"):
            made.append(f"priority=10,in_port={2 - out},{match},actions={rewrite}")
    return made


def settings(endpoint: Endpoint) -> dict[str, str]:
    """DPDK settings: PMD threads on the given cores, everything else on the first of them, and a fixed amount of
    memory.
    """
    mask = sum(1 << core for core in endpoint.cores)
    channels = f" -n {endpoint.channels}" if endpoint.channels else ""
    return {
        "dpdk-init": "true",
        "dpdk-socket-mem": str(endpoint.memory_mib),
        "dpdk-socket-limit": str(endpoint.memory_mib),
        "pmd-cpu-mask": f"0x{mask:x}",
        "dpdk-lcore-mask": f"0x{1 << endpoint.core:x}",
        "dpdk-extra": f'"--no-pci --in-memory --no-telemetry --file-prefix dl3-dut{channels}"',
    }


@dataclass
class Switch:
    """See dl3.lab.endpoint.Device."""

    endpoint: Endpoint
    namespace: Namespace
    mode: str
    processes: list[Process] = field(default_factory=list)
    name: str = "ovs"
    client: Client | None = None

    @property
    def own(self) -> Vswitch:
        """Its programs and commands."""
        return Vswitch(self.endpoint.links.folder)

    def start(self) -> None:
        """Start it and create its bridge, ports and flows."""
        own = self.own
        self.processes.append(own.start_server(settings(self.endpoint)))
        switch = start_process(SWITCH, self.namespace.command(*own.command), own.folder)
        self.processes.insert(0, switch)
        switch.wait_until(own.control.exists, "was ready", START_SECONDS)
        own.vsctl(*self.bridge())
        if wrong := own.wrong_port(*NAMES):
            raise Fault(f"ovs: {wrong}; its last output: {switch.last_words()}")
        for flow in flows(self.mode):
            own.ofctl("add-flow", flow)
        if self.mode == "bridge":  # frames are sent to the addresses of a router at the link where they enter
            for mac, port in zip(DUT_MACS, reversed(NAMES), strict=True):
                own.appctl("fdb/add", BRIDGE, port, "0", mac)
        switch.wait_until(self.endpoint.links.is_listening, "had its ports", START_SECONDS)

    def bridge(self) -> list[str]:
        """Commands for a user-space bridge with both ports; their sockets are in the folder, named after the ports."""
        words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure"]
        for i, name in enumerate(NAMES):
            port = ("type=dpdkvhostuser", f"ofport_request={i + 1}")
            words += ["--", "add-port", BRIDGE, name, "--", "set", "Interface", name, *port]
        return words

    def restart(self) -> None:
        """Not possible: its links are not re-established."""
        raise Fault("ovs: the switch cannot be reset, because dl3gen cannot reconnect to its sockets")

    def reset_port(self) -> None:
        """Set the port down and up with OpenFlow."""
        for state in ("down", "up"):
            self.own.ofctl("mod-port", NAMES[0], state)


@dataclass(frozen=True)
class Ovs:
    """The switch with its flows."""

    mode: str

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """The bridge has an interface in Linux, so it runs in a namespace."""
        with Lab() as lab:
            switch = Switch(endpoint, lab.namespace("ovs", silent=True), self.mode)
            try:
                switch.start()
                yield switch
            finally:
                end_all(switch.processes)

    def about(self, endpoint: Endpoint, _device: Device) -> Mapping[str, object]:
        """Version as reported by the switch, and configuration."""
        return {
            "version": ", ".join(run([str(WITH_DPDK), "--version"]).split("\n")[:2]),
            "configuration": {
                "other_config": settings(endpoint),
                "ports": "dpdkvhostuser",
                "flows": flows(self.mode),
                "burst": OWN_BURST,
            },
        }


def make(_setup: Setup, options: Mapping[str, str], _build: Path) -> Ovs:
    """A router or a switch."""
    return Ovs(options["mode"])


KIND = WiredKind(
    name="ovs",
    make=make,
    needs=needs,
    honours=frozenset(("cores", "dut_cores", "memory_mib", "channels", "descriptors")),
    choices={"mode": ("route", "bridge"), "wire": ("vhost",)},
    resets_over=frozenset(("vhost",)),
)
