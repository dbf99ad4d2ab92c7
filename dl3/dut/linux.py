"""Linux itself as the router between two veth links, in its own namespace."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from dl3.control.client import Client
from dl3.dut.wired import WiredKind
from dl3.lab.cables import Cables
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.links import (
    DUT_ADDRESSES,
    DUT_ADDRESSES_6,
    GENERATOR_ADDRESSES,
    GENERATOR_ADDRESSES_6,
    GENERATOR_MACS,
    NAMES,
    NETWORKS,
    NETWORKS_6,
)
from dl3.lab.namespace import Namespace
from dl3.lab.process import Process
from dl3.lab.tables import TableFiles
from dl3.model.campaign import Setup
from dl3.model.fault import Fault

BATCH_SECONDS = 120.0
SETTINGS = {
    "net.ipv4.ip_forward": "1",
    "net.ipv6.conf.all.forwarding": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
}


def core_mask(cores: Sequence[int]) -> str:
    """A CPU mask in the kernel's format: hexadecimal words of 32 bits, highest first."""
    mask = sum(1 << core for core in cores)
    first, *others = (mask >> 32 * word & 0xFFFFFFFF for word in range(max(cores, default=0) // 32, -1, -1))
    return ",".join((f"{first:x}", *(f"{word:08x}" for word in others)))


def lines_for(port: int) -> list[str]:
    """The `ip -batch` commands for one port that is up."""
    name, mac = NAMES[port], GENERATOR_MACS[port]
    hops = (GENERATOR_ADDRESSES[port], GENERATOR_ADDRESSES_6[port])
    networks = (NETWORKS[port], NETWORKS_6[port])
    return [
        *(f"address replace {address} dev {name}" for address in (DUT_ADDRESSES[port], DUT_ADDRESSES_6[port])),
        *(f"neighbour replace {hop} lladdr {mac} dev {name}" for hop in hops),
        *(f"route replace {network} via {hop} dev {name}" for network, hop in zip(networks, hops, strict=True)),
    ]


@dataclass(frozen=True)
class Router:
    """The forwarding namespace; it has no process."""

    cables: Cables
    processes: tuple[Process, ...] = ()
    name: str = "linux"
    client: Client | None = None

    @property
    def namespace(self) -> Namespace:
        """The namespace of the device's ends."""
        return self.cables.server

    def tell(self, lines: Sequence[str]) -> None:
        """Run all commands in one `ip` batch."""
        path = self.cables.folder / "batch"
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        self.namespace.run("ip", "-batch", str(path), timeout_s=BATCH_SECONDS)

    def restart(self) -> None:
        """Not possible."""
        raise Fault("linux: the kernel is not a process that can be reset; reset its port instead")

    def reset_port(self) -> None:
        """Linux removes the routes of a port that is down, so they are added again."""
        self.cables.reset_port()
        self.tell(lines_for(0))


@dataclass(frozen=True)
class Linux:
    """The router with its routes."""

    prefixes: tuple[str, ...] = ()

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """Settings, routes, neighbours. Packets are processed on the device's cores (RPS), not on the sender's."""
        router = Router(cast(Cables, endpoint.links))  # veth is the only wire of this kind
        router.namespace.run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
        for name in NAMES:
            queue = f"/sys/class/net/{name}/queues/rx-0/rps_cpus"
            router.namespace.run("sh", "-c", f"echo {core_mask(endpoint.cores)} > {queue}")
        hops = [GENERATOR_ADDRESSES, GENERATOR_ADDRESSES_6]
        more = (
            f"route replace {prefix} via {hops[':' in prefix][i % 2]} dev {NAMES[i % 2]}"
            for i, prefix in enumerate(self.prefixes)
        )
        router.tell([*lines_for(0), *lines_for(1), *more])
        yield router

    def about(self, endpoint: Endpoint, _device: Device) -> Mapping[str, object]:
        """The kernel version and the configuration."""
        return {
            "version": f"Linux {platform.release()} {platform.version()}",
            "configuration": {
                "sysctl": SETTINGS,
                "ip": [*lines_for(0), *lines_for(1)],
                "further_routes": len(self.prefixes),
                "rps_cpus": core_mask(endpoint.cores),
                "offloads": "tx, rx, tso, gso and gro off",
            },
        }


def make(setup: Setup, _options: Mapping[str, str], build: Path) -> Linux:
    """With the routing table in addition to its own routes."""
    if setup.routes == "one":
        return Linux()
    return Linux(tuple(TableFiles(setup.routes, build / "tables").prefixes()))


KIND = WiredKind(
    name="linux",
    make=make,
    needs=lambda: "",  # it is the host's kernel
    honours=frozenset(("cores", "dut_cores", "routes")),
    choices={"wire": ("veth",)},
    is_router=True,
)
