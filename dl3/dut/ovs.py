"""Open vSwitch with DPDK: private instances of ovsdb-server and ovs-vswitchd, in their own folder and namespace.

Its ports are vhost-user: over memif it would send on a second queue, which has no peer. Its flows act like a router:
they rewrite the MAC addresses and decrement the TTL.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dl3.control.client import Client
from dl3.dut import dpdk
from dl3.dut.wired import WiredKind
from dl3.lab.command import run
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import DUT_MACS, GENERATOR_MACS, NAMES, NETWORKS, NETWORKS_6
from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import Process, end_all
from dl3.lab.single import START_SECONDS, start_process
from dl3.model.campaign import Setup
from dl3.model.fault import Fault

SERVER, SWITCH = "ovsdb-server", "ovs-vswitchd"
WITH_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")  # path in Debian
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
BRIDGE = "dl3"
OWN_BURST = 32  # NETDEV_MAX_BURST


def flows() -> list[str]:
    """One flow per direction and family; everything else is dropped."""
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
    processes: list[Process] = field(default_factory=list)
    name: str = "ovs"
    client: Client | None = None

    @property
    def folder(self) -> Path:
        """Folder of its database, sockets and logs."""
        return self.endpoint.links.folder

    @property
    def database(self) -> Path:
        """The socket of ovsdb-server."""
        return self.folder / "db.sock"

    def vsctl(self, *words: str) -> str:
        """Run ovs-vsctl; returns when the switch has applied the change."""
        return run(["ovs-vsctl", f"--db=unix:{self.database}", "--timeout=30", *words])

    def ofctl(self, method: str, *words: str) -> str:
        """Run ovs-ofctl."""
        return run(["ovs-ofctl", method, f"unix:{self.folder / BRIDGE}.mgmt", *words])

    def start_server(self) -> None:
        """Create an empty database and start its server."""
        file = self.folder / "conf.db"
        run(["ovsdb-tool", "create", str(file), str(SCHEMA)])
        command = (SERVER, str(file), f"--remote=punix:{self.database}", f"--unixctl={self.folder / SERVER}.ctl")
        server = start_process(SERVER, command, self.folder)
        self.processes.append(server)
        server.wait_until(self.database.exists, "was ready", START_SECONDS)
        words = (f"other_config:{key}={value}" for key, value in settings(self.endpoint).items())
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", *words)

    def start_switch(self) -> None:
        """Start ovs-vswitchd and create its bridge, ports and flows."""
        folder = self.folder
        command = (str(WITH_DPDK), f"unix:{self.database}", f"--unixctl={folder / SWITCH}.ctl")
        switch = start_process(SWITCH, self.namespace.command("env", f"OVS_RUNDIR={folder}", *command), folder)
        self.processes.insert(0, switch)
        switch.wait_until(lambda: (folder / f"{SWITCH}.ctl").exists(), "was ready", START_SECONDS)
        self.vsctl(*self.bridge())
        for name in NAMES:
            if error := self.vsctl("get", "Interface", name, "error").strip().strip('[]"'):
                raise Fault(f"ovs: port {name} does not work: {error}; its last output: {switch.last_words()}")
        for flow in flows():
            self.ofctl("add-flow", flow)
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
            self.ofctl("mod-port", NAMES[0], state)


@dataclass(frozen=True)
class Ovs:
    """The switch with its flows."""

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """The bridge has an interface in Linux, so it runs in a namespace."""
        with Lab() as lab:
            switch = Switch(endpoint, lab.namespace("ovs", silent=True))
            try:
                switch.start_server()
                switch.start_switch()
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
                "flows": flows(),
                "burst": OWN_BURST,
            },
        }


def make(_setup: Setup, _options: Mapping[str, str], _build: Path) -> Ovs:
    """There are no options."""
    return Ovs()


def needs() -> str:
    """See dl3.dut.kind.Kind.missing."""
    if WITH_DPDK.exists() and shutil.which("ovs-vsctl") and shutil.which(SERVER):
        return ""
    return f"Open vSwitch with DPDK is not installed: {dpdk.INSTALL} (package openvswitch-switch-dpdk)"


KIND = WiredKind(
    name="ovs",
    make=make,
    needs=needs,
    honours=frozenset(("cores", "dut_cores", "memory_mib", "channels", "descriptors")),
    choices={"wire": ("vhost",)},
    resets_over=frozenset(("vhost",)),
)
