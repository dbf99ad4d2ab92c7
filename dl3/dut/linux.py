"""Linux itself between two veth links, in its own namespace: as a router, or with a bridge, also one with VXLAN."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dl3.control.client import Client
from dl3.dut import vxlan
from dl3.dut.wired import WiredKind
from dl3.lab.cables import Cables
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
from dl3.lab.namespace import Namespace
from dl3.lab.process import Process
from dl3.lab.tables import TableFiles
from dl3.model.campaign import Setup
from dl3.model.fault import Fault, UsageFault

BATCH_SECONDS = 120.0
BRIDGE, TUNNEL = "br0", "vxlan0"
FAIR_QUEUE, PLAIN_QUEUE = "fq_codel", "bfifo"
PORT_MACS = ("02:00:00:00:00:21", "02:00:00:00:00:22")
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


def bridge_lines() -> list[str]:
    """The `ip -batch` commands for a bridge of both ports. Frames are sent to the addresses that a router would have,
    which its ports must not have: these get others.
    """
    return [
        f"link add {BRIDGE} type bridge mcast_snooping 0",
        *(f"link set dev {name} address {mac}" for name, mac in zip(NAMES, PORT_MACS, strict=True)),
        *(f"link set dev {name} master {BRIDGE}" for name in NAMES),
        f"link set dev {BRIDGE} up",
    ]


def bridge_macs() -> list[str]:
    """The `bridge -batch` commands: the addresses to which frames are sent are behind the other link."""
    return [f"fdb replace {mac} dev {NAMES[1 - i]} master static" for i, mac in enumerate(DUT_MACS)]


def vxlan_lines() -> list[str]:
    """The `ip -batch` commands for a bridge of the left link and of a VXLAN device over the right one."""
    ends = f"local {vxlan.LOCAL} remote {vxlan.REMOTE} dstport {vxlan.UDP_PORT}"
    return [
        f"address replace {vxlan.LOCAL}/{vxlan.LENGTH} dev {vxlan.UNDERLAY}",
        f"neighbour replace {vxlan.REMOTE} lladdr {vxlan.REMOTE_MAC} dev {vxlan.UNDERLAY}",
        f"link add {TUNNEL} type vxlan id {vxlan.VNI} {ends}",
        f"link add {BRIDGE} type bridge mcast_snooping 0",
        f"link set dev {vxlan.HOSTS} address {PORT_MACS[0]} master {BRIDGE}",
        f"link set dev {TUNNEL} master {BRIDGE} up",
        f"link set dev {BRIDGE} up",
    ]


def vxlan_macs() -> list[str]:
    """The `bridge -batch` commands: which hosts are where."""
    return [
        f"fdb replace {vxlan.HOST} dev {vxlan.HOSTS} master static",
        f"fdb replace {vxlan.FAR_HOST} dev {TUNNEL} master static",
        f"fdb replace {vxlan.FAR_HOST} dev {TUNNEL} self static dst {vxlan.REMOTE}",
    ]


BRIDGES = {"bridge": (bridge_lines, bridge_macs), vxlan.MODE: (vxlan_lines, vxlan_macs)}  # by mode


@dataclass(frozen=True)
class Router:
    """The forwarding namespace; it has no process."""

    cables: Cables
    mode: str = "route"
    processes: tuple[Process, ...] = ()
    name: str = "linux"
    client: Client | None = None

    @property
    def namespace(self) -> Namespace:
        """The namespace of the device's ends."""
        return self.cables.server

    def tell(self, lines: Sequence[str], program: str = "ip") -> None:
        """Run all commands in one batch of `ip` or `bridge`."""
        path = self.cables.folder / "batch"
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        self.namespace.run(program, "-batch", str(path), timeout_s=BATCH_SECONDS)

    def restart(self) -> None:
        """Not possible."""
        raise Fault("linux: the kernel is not a process that can be reset; reset its port instead")

    def reset_port(self) -> None:
        """Linux removes the routes of a port that is down, so they are added again; a bridge keeps its port."""
        self.cables.reset_port()
        if self.mode == "route":
            self.tell(lines_for(0))


@dataclass(frozen=True)
class Linux:
    """The router with its routes, or the bridge."""

    prefixes: tuple[str, ...] = ()
    mode: str = "route"
    shaper: Callable[[str], Iterable[str]] | None = None  # the `tc -batch` commands, from what each class queues with

    def configure(self, router: Router) -> None:
        """What is told to the kernel."""
        if self.mode in BRIDGES:
            lines, macs = BRIDGES[self.mode]
            router.tell(lines())
            router.tell(macs(), "bridge")
            return
        router.namespace.run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
        hops = [GENERATOR_ADDRESSES, GENERATOR_ADDRESSES_6]
        more = (
            f"route replace {prefix} via {hops[':' in prefix][i % 2]} dev {NAMES[i % 2]}"
            for i, prefix in enumerate(self.prefixes)
        )
        router.tell([*lines_for(0), *lines_for(1), *more])
        if self.shaper:
            router.tell(list(self.shaper(queue_here(router.namespace))), "tc")

    def configuration(self) -> dict[str, Any]:
        """The same, for the record."""
        if self.mode in BRIDGES:
            lines, macs = BRIDGES[self.mode]
            return {"ip": lines(), "bridge": macs()}
        return {"sysctl": SETTINGS, "ip": [*lines_for(0), *lines_for(1)], "further_routes": len(self.prefixes)}

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """Settings, routes, neighbours. Packets are processed on the device's cores (RPS), not on the sender's."""
        router = Router(cast(Cables, endpoint.links), self.mode)  # veth is the only wire of this kind
        for name in NAMES:
            queue = f"/sys/class/net/{name}/queues/rx-0/rps_cpus"
            router.namespace.run("sh", "-c", f"echo {core_mask(endpoint.cores)} > {queue}")
        self.configure(router)
        yield router

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:
        """The kernel version and the configuration."""
        queue = {"queue": queue_here(cast(Router, device).namespace)} if self.shaper else {}
        return {
            "version": f"Linux {platform.release()} {platform.version()}",
            "configuration": {
                **self.configuration(),
                **queue,
                "rps_cpus": core_mask(endpoint.cores),
                "offloads": "tx, rx, tso, gso and gro off",
            },
        }


def queue_here(namespace: Namespace) -> str:
    """What a class can queue with: fq_codel if the kernel has it, else the plain queue that it always has."""
    try:
        namespace.run("tc", "qdisc", "replace", "dev", "lo", "root", FAIR_QUEUE)
    except Fault:
        return PLAIN_QUEUE
    namespace.run("tc", "qdisc", "delete", "dev", "lo", "root")
    return FAIR_QUEUE


def make(setup: Setup, options: Mapping[str, str], build: Path) -> Linux:
    """With the routing table in addition to its own routes."""
    if setup.routes == "one":
        return Linux(mode=options["mode"])
    if options["mode"] != "route":
        raise UsageFault(
            f"{setup.dut.name}: routes '{setup.routes}' have no effect with 'mode: bridge': leave one of them out"
        )
    return Linux(tuple(TableFiles(setup.routes, build / "tables").prefixes()))


KIND = WiredKind(
    name="linux",
    make=make,
    needs=lambda: "",  # it is the host's kernel
    honours=frozenset(("cores", "dut_cores", "routes")),
    carried=vxlan.carried,
    most_in_mode=vxlan.LARGEST,
    choices={"mode": ("route", "bridge", vxlan.MODE), "wire": ("veth",)},
    is_router=True,
)
