"""Two dl3d as the vRouters of two hosts: each has the port of a VM, and between them are MPLS labels in UDP (RFC 7510).

A packet from one VM is encapsulated by the first, sent over the underlay, and decapsulated by the second, whose label
selects the other VM. Both share the device's cores.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from dl3.control.client import Client
from dl3.control.replies import Reply
from dl3.dut.chain import Chain
from dl3.dut.wired import WiredKind
from dl3.host.interrupts import Held
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import (
    DUT_ADDRESSES,
    DUT_ADDRESSES_6,
    DUT_MACS,
    GENERATOR_ADDRESSES,
    GENERATOR_ADDRESSES_6,
    GENERATOR_MACS,
    NAMES,
    NETWORKS,
    NETWORKS_6,
)
from dl3.lab.process import Process, end_all
from dl3.lab.single import START_SECONDS, built, is_ready, start_process
from dl3.model.campaign import Setup
from dl3.model.fault import Fault

UNDERLAY = ("192.0.2.1", "192.0.2.2")
UNDERLAY_MACS = ("02:00:00:00:00:31", "02:00:00:00:00:32")
UNDERLAY_MTU = 1600  # 1500 and what is put around a packet
LABELS = (100, 200)  # of the VM behind each router
OTHERS = ("198.18.128.0/17", "198.19.128.0/17")  # where the second VM of each host is, at the same port
OTHERS_LABELS = (101, 201)
RINGS = 16384
BETWEEN = "underlay"  # the port of each to the other one


@dataclass(frozen=True)
class Vrouter:
    """One of the two: of host 0 or host 1."""

    host: int
    endpoint: Endpoint

    @property
    def folder(self) -> Path:
        """For its files; the links' folder is that of both."""
        return self.endpoint.links.folder

    @property
    def name(self) -> str:
        """Of its files and its process."""
        return f"vrouter{self.host + 1}"

    @property
    def client(self) -> Client:
        """Of its control socket."""
        return Client(self.folder / f"{self.name}.sock")

    def underlay(self) -> str:
        """Its end of the link between the hosts; the first one listens."""
        role = ("server", "client")[self.host]
        return f"net_memif9,role={role},id=0,socket={self.folder / 'underlay.memif'},socket-abstract=no,rsize=14"

    def ports(self) -> list[dict[str, object]]:
        """The port of the VM and that of the underlay."""
        me, slots = self.host, self.endpoint.descriptors
        vm = {
            "name": NAMES[me],
            "device": self.endpoint.links.devices("server")[me],
            "mac": DUT_MACS[me],
            "addresses": [DUT_ADDRESSES[me], DUT_ADDRESSES_6[me]],
        }
        underlay = {
            "name": BETWEEN,
            "device": self.underlay(),
            "mac": UNDERLAY_MACS[me],
            "mtu": UNDERLAY_MTU,
            "addresses": [f"{UNDERLAY[me]}/24"],
        }
        return [
            {**vm, "queues": 1, "rx_descriptors": slots, "tx_descriptors": slots},
            {**underlay, "queues": 1, "rx_descriptors": RINGS, "tx_descriptors": RINGS},
        ]

    def file(self) -> dict[str, object]:
        """dl3d's configuration."""
        me, other = self.host, 1 - self.host
        ways = [(NETWORKS[me], GENERATOR_ADDRESSES[me]), (NETWORKS_6[me], GENERATOR_ADDRESSES_6[me])]
        ends = f"remote {UNDERLAY[other]} local {UNDERLAY[me]}"
        encap = f"encap mpls-udp label {LABELS[other]} {ends}"
        return {
            "ports": self.ports(),
            "workers": [{"core": self.endpoint.core}],
            "burst": self.endpoint.burst,
            "routes": [
                *(f"{network} via {hop} dev {NAMES[me]}" for network, hop in ways),
                *(f"{network} {encap}" for network in (NETWORKS[other], NETWORKS_6[other])),
                f"{OTHERS[other]} encap mpls-udp label {OTHERS_LABELS[other]} {ends}",
                *(f"mpls {labels[me]} pop" for labels in (LABELS, OTHERS_LABELS)),
            ],
            "neighbours": [
                *(f"{hop} lladdr {GENERATOR_MACS[me]} dev {NAMES[me]}" for _, hop in ways),
                f"{UNDERLAY[other]} lladdr {UNDERLAY_MACS[other]} dev {BETWEEN}",
            ],
            "memory": {
                "hugepages": "never" if self.endpoint.page_kib == 4 else "require",
                "mib": self.endpoint.memory_mib // 2,
            },
            "control": {"socket": str(self.folder / f"{self.name}.sock")},
        }

    def start(self, program: Path) -> Process:
        """Start it, without waiting."""
        path = self.folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(self.file(), sort_keys=False), encoding="utf-8")
        command = self.endpoint.links.enter("server", str(program), str(path))
        return start_process(self.name, command, self.folder)


@dataclass
class Hosts:
    """See dl3.lab.endpoint.Device."""

    routers: tuple[Vrouter, Vrouter]
    processes: list[Process] = field(default_factory=list)
    name: str = "vrouters"

    @property
    def client(self) -> Client | None:
        """Of both, as one forwarder from VM to VM."""
        return Chain([router.client for router in self.routers], BETWEEN)

    def start(self, program: Path) -> None:
        """The one that listens first."""
        with Held():
            for router in self.routers:
                self.processes.append(router.start(program))
                self.processes[-1].wait_until(partial(is_ready, router.client), "was ready", START_SECONDS)
        links = self.routers[0].endpoint.links
        self.processes[-1].wait_until(links.is_listening, "had all its links", START_SECONDS)

    def restart(self) -> None:
        """Not possible."""
        raise Fault("vrouters: two programs are one device here, and neither is reset alone")

    def reset_port(self) -> None:
        """Reset the device's end of the first link."""
        self.routers[0].endpoint.links.reset_port()


@dataclass(frozen=True)
class Vrouters:
    """See dl3.dut.kind.Subject."""

    program: Path

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """Both, inside the context."""
        hosts = Hosts((Vrouter(0, endpoint), Vrouter(1, endpoint)))
        try:
            hosts.start(self.program)
            yield hosts
        finally:
            end_all(hosts.processes)

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:  # noqa: ARG002
        """Version and configurations."""
        routers = (Vrouter(0, endpoint), Vrouter(1, endpoint))
        status = routers[0].client.ask(Reply, "status").model_dump()
        return {
            "version": f"dl3d {status['version']}, {status['dpdk']}",
            "configuration": {router.name: router.file() for router in routers},
        }


def make(_setup: Setup, _options: Mapping[str, str], build: Path) -> Vrouters:
    """Two of this build."""
    return Vrouters(built(build / "src" / "dl3d"))


KIND = WiredKind(
    name="vrouters",
    make=make,
    needs=lambda: "",  # built together with dl3
    honours=frozenset(("dut_cores", "memory_mib", "page_kib", "burst", "descriptors")),
    choices={"wire": ("vhost", "memif")},
)
