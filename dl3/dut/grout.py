"""grout, DPDK's graph router, if installed; Debian has no package of it."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dl3.control.client import Client
from dl3.dut.wired import WiredKind
from dl3.lab.command import run
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
from dl3.lab.namespace import Lab
from dl3.lab.process import Process, end_all
from dl3.lab.single import START_SECONDS, start_process
from dl3.model.campaign import Setup
from dl3.model.fault import Fault

PROGRAM, TELLER = "grout", "grcli"


def lines_for(port: int, endpoint: Endpoint) -> list[str]:
    """The grcli commands for one port."""
    name, device = NAMES[port], endpoint.links.devices("server")[port]
    hops = (GENERATOR_ADDRESSES[port], GENERATOR_ADDRESSES_6[port])
    networks = (NETWORKS[port], NETWORKS_6[port])
    return [
        f"interface add port {name} devargs {device} mac {DUT_MACS[port]} rxqs 1 qsize {endpoint.descriptors}",
        *(f"address add {address} iface {name}" for address in (DUT_ADDRESSES[port], DUT_ADDRESSES_6[port])),
        *(f"nexthop add l3 iface {name} address {hop} mac {GENERATOR_MACS[port]}" for hop in hops),
        *(f"route add {network} via {hop}" for network, hop in zip(networks, hops, strict=True)),
    ]


def lines(endpoint: Endpoint) -> list[str]:
    """The whole configuration."""
    cores = ",".join(str(core) for core in endpoint.cores)
    return [
        f"affinity cpus set control {endpoint.core} datapath {cores}",
        *lines_for(0, endpoint),
        *lines_for(1, endpoint),
    ]


def command(endpoint: Endpoint) -> list[str]:
    """Busy polling, without metrics export."""
    pages = ["-t"] if endpoint.page_kib == 4 else []
    channels = ["-n", str(endpoint.channels)] if endpoint.channels else []
    socket = str(endpoint.links.folder / "grout.sock")
    return [PROGRAM, "-p", "-M", ":0", "-s", socket, *pages, "--", "-m", str(endpoint.memory_mib), *channels]


@dataclass
class Running:
    """See dl3.lab.endpoint.Device."""

    endpoint: Endpoint
    processes: list[Process] = field(default_factory=list)
    name: str = "grout"
    client: Client | None = None

    def configure(self) -> None:
        """Configure it as soon as it listens."""
        folder, router = self.endpoint.links.folder, self.processes[0]
        socket, file = folder / "grout.sock", folder / "grout.init"
        router.wait_until(socket.exists, "was ready", START_SECONDS)
        file.write_text("\n".join(lines(self.endpoint)) + "\n", encoding="ascii")
        run([TELLER, "-s", str(socket), "-e", "-f", str(file)])
        router.wait_until(self.endpoint.links.is_listening, "had its ports", START_SECONDS)

    def restart(self) -> None:
        """Not possible over memif."""
        raise Fault("grout at memif links cannot be reset, because dl3gen would poll a dead peer")

    def reset_port(self) -> None:
        """With grout's own command."""
        for state in ("down", "up"):
            run(
                [
                    TELLER,
                    "-s",
                    str(self.endpoint.links.folder / "grout.sock"),
                    "interface",
                    "set",
                    "port",
                    NAMES[0],
                    state,
                ]
            )


@dataclass(frozen=True)
class Grout:
    """The router with its routes."""

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """grout creates a Linux interface per port, so it runs in a namespace."""
        with Lab() as lab:
            inside = lab.namespace("grout", silent=True).command(*command(endpoint))
            device = Running(endpoint, [start_process(PROGRAM, inside, endpoint.links.folder)])
            try:
                device.configure()
                yield device
            finally:
                end_all(device.processes)

    def about(self, endpoint: Endpoint, _device: Device) -> Mapping[str, object]:
        """Version as reported by grout, and configuration."""
        version = run([PROGRAM, "-V"]).strip()
        return {"version": version, "configuration": {"command": command(endpoint), "grcli": lines(endpoint)}}


def make(_setup: Setup, _options: Mapping[str, str], _build: Path) -> Grout:
    """There are no options."""
    return Grout()


def needs() -> str:
    """See dl3.dut.kind.Kind.missing."""
    if shutil.which(PROGRAM) and shutil.which(TELLER):
        return ""
    return (
        "grout is not installed: build it as https://github.com/DPDK/grout says, or install the package of its "
        "release 'edge'"
    )


KIND = WiredKind(
    name="grout",
    make=make,
    needs=needs,
    honours=frozenset(("cores", "dut_cores", "memory_mib", "page_kib", "channels", "descriptors")),
    choices={"wire": ("memif",)},
    resets_over=frozenset(("memif",)),  # only of its port, with grout's own command
)
