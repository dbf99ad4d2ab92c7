"""dl3d of this build: it routes with a configuration of its own, cross-connects, or is a bridge, also one with VXLAN."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dl3.control.replies import Reply
from dl3.control.workers import ask_idle
from dl3.dut import vxlan
from dl3.dut.flow_table import FlowTable, table_for
from dl3.dut.wired import WiredKind
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
from dl3.lab.single import built, started
from dl3.lab.tables import TableFiles
from dl3.model.campaign import Setup, Traffic
from dl3.model.fault import UsageFault
from dl3.model.white_paper import NETWORKS as WHITE_PAPER_NETWORKS

MOST_WORKERS = len(NAMES)
OWN_DEFAULT = "default"  # default of dl3d: the key is omitted from its configuration


@dataclass(frozen=True)
class Dl3d:
    """dl3d between the links: one route per family for the network behind each link, plus the given routes."""

    program: Path
    routes: tuple[str, ...] = ()
    route_files: tuple[Path, ...] = ()
    mode: str = "route"
    idle: str = OWN_DEFAULT
    name: str = "dl3d"
    ready_words: str = ""
    flows: FlowTable | None = None
    more: Mapping[str, object] = field(default_factory=dict)  # keys of its configuration

    def ports(self, endpoint: Endpoint) -> list[dict[str, object]]:
        """Both ports, with one queue each."""
        devices = endpoint.links.devices("server")
        rings = {"queues": 1, "rx_descriptors": endpoint.descriptors, "tx_descriptors": endpoint.descriptors}
        ports = [{"name": NAMES[i], "device": devices[i], "mac": DUT_MACS[i], **rings} for i in range(2)]
        if self.mode == "bridge":
            return [{key: value for key, value in port.items() if key != "mac"} for port in ports]
        if self.mode == vxlan.MODE:
            hosts, underlay = ports
            del hosts["mac"]
            return [hosts, underlay | {"addresses": [f"{vxlan.LOCAL}/{vxlan.LENGTH}"]}]
        if self.mode == "xconnect":
            return [port | {"mode": "xconnect", "to": NAMES[1 - i]} for i, port in enumerate(ports)]
        return [port | {"addresses": [DUT_ADDRESSES[i], DUT_ADDRESSES_6[i]]} for i, port in enumerate(ports)]

    def workers(self, endpoint: Endpoint) -> list[dict[str, object]]:
        """One worker polls both ports, two poll one each."""
        if len(endpoint.cores) > MOST_WORKERS:
            raise UsageFault(
                f"dl3d: {len(endpoint.cores)} cores, but two ports of one queue keep {MOST_WORKERS} workers busy"
            )
        return [{"core": core} for core in endpoint.cores]

    def tables(self) -> dict[str, object]:
        """Routes and neighbours."""
        hops = [*zip(NETWORKS, GENERATOR_ADDRESSES, strict=True), *zip(NETWORKS_6, GENERATOR_ADDRESSES_6, strict=True)]
        lines = [f"{hop} lladdr {GENERATOR_MACS[i % 2]} dev {NAMES[i % 2]}" for i, (_, hop) in enumerate(hops)]
        return {
            "routes": [*(f"{net} via {hop} dev {NAMES[i % 2]}" for i, (net, hop) in enumerate(hops)), *self.routes],
            "route_files": [str(path) for path in self.route_files],
            "neighbours": lines,
        }

    def bridge(self) -> dict[str, object]:
        """Both links in one bridge. Frames are sent to the addresses that a router would have at the link where they
        enter, so these are behind the other link; those of dl3gen are learnt.
        """
        macs = [{"mac": mac, "port": NAMES[1 - i]} for i, mac in enumerate(DUT_MACS)]
        return {"bridges": [{"name": "br0", "ports": list(NAMES), "macs": macs}]}

    def overlay(self) -> dict[str, object]:
        """A bridge of the left link and a remote end; addresses are learnt, and not forgotten while it is measured."""
        own = {"vni": vxlan.VNI, "local": vxlan.LOCAL, "remotes": [vxlan.REMOTE]}
        return {
            "bridges": [{"name": "br0", "ports": [vxlan.HOSTS], "vxlan": own, "ageing": 1_000_000}],
            "neighbours": [f"{vxlan.REMOTE} lladdr {vxlan.REMOTE_MAC} dev {vxlan.UNDERLAY}"],
        }

    def file(self, endpoint: Endpoint) -> dict[str, Any]:
        """dl3d's configuration."""
        pages = {"hugepages": "never" if endpoint.page_kib == 4 else "require", "mib": endpoint.memory_mib}
        return {
            "ports": self.ports(endpoint),
            "workers": self.workers(endpoint),
            "burst": endpoint.burst,
            **({} if self.idle == OWN_DEFAULT else {"idle": self.idle}),
            **(self.tables() if self.mode == "route" else {}),
            **(self.bridge() if self.mode == "bridge" else {}),
            **(self.overlay() if self.mode == vxlan.MODE else {}),
            **(self.flows.keys() if self.flows else {}),
            **self.more,
            "memory": pages,
            **({"eal": {"args": ["-n", str(endpoint.channels)]}} if endpoint.channels else {}),
            "control": {"socket": str(self.socket(endpoint))},
        }

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """Write the configuration file; returns the command."""
        path = endpoint.links.folder / "dl3d.yaml"
        path.write_text(yaml.safe_dump(self.file(endpoint), sort_keys=False), encoding="utf-8")
        return str(self.program), str(path)

    def socket(self, endpoint: Endpoint) -> Path:
        """In the private folder."""
        return endpoint.links.folder / "dl3d.sock"

    @contextmanager
    def started(self, endpoint: Endpoint) -> Iterator[Device]:
        """See dl3.dut.kind.Subject."""
        with started(self, endpoint) as device:
            if self.flows and device.client:
                self.flows.wait(device.client)
            yield device

    def about(self, endpoint: Endpoint, device: Device) -> Mapping[str, object]:
        """Version and configuration as reported by dl3d."""
        if not device.client:
            return {"configuration": self.file(endpoint)}
        status = device.client.ask(Reply, "status").model_dump()
        version = f"dl3d {status['version']}, {status['dpdk']}"
        return {"version": version, **ask_idle(device.client), "configuration": self.file(endpoint)}


def route_file(name: str, folder: Path) -> tuple[Path, ...]:
    """A built-in table in dl3d's format, with prefixes alternating between the links; the lab already has 'one'."""
    if name == "one":
        return ()
    files = TableFiles(name, folder)
    hops = GENERATOR_ADDRESSES if files.bits == 32 else GENERATOR_ADDRESSES_6
    ways = [f" via {hops[i]} dev {NAMES[i]}\n" for i in range(2)]
    path = folder / f"{name}.lab.routes"
    path.write_text("".join(prefix + ways[i % 2] for i, prefix in enumerate(files.prefixes())), encoding="ascii")
    return (path,)


def make(setup: Setup, options: Mapping[str, str], build: Path) -> Dl3d:
    """A dl3d for these options and this routing table."""
    if options["mode"] != "route" and setup.routes != "one":
        raise UsageFault(
            f"{setup.dut.name}: routes '{setup.routes}' have no effect with 'mode: {options['mode']}': leave one of them out"
        )
    files = route_file(setup.routes, build / "tables")
    return Dl3d(built(build / "src" / "dl3d"), route_files=files, mode=options["mode"], idle=options["idle"])


def white_paper_routes() -> tuple[str, ...]:
    """To the white paper's networks; the first one is behind the right link."""
    hops = zip(WHITE_PAPER_NETWORKS, reversed(GENERATOR_ADDRESSES), reversed(NAMES), strict=True)
    return tuple(f"{network} via {hop} dev {name}" for network, hop, name in hops)


def for_traffic(dut: Dl3d, options: Mapping[str, str], traffic: Traffic, build: Path) -> Dl3d:
    """With a flow for each flow of the traffic, if the option says so, else with routes for it."""
    if options["lookup"] == "route":
        more = white_paper_routes() if traffic.addresses == "white-paper" else ()
        return replace(dut, routes=(*dut.routes, *more))
    if dut.mode != "route":
        raise UsageFault(f"dl3d: the option 'lookup: flow' is not possible with 'mode: {dut.mode}'")
    return replace(dut, flows=table_for(traffic, build / "tables"))


KIND = WiredKind(
    name="dl3d",
    make=make,
    for_traffic=for_traffic,
    needs=lambda: "",  # built together with dl3
    honours=frozenset(("cores", "dut_cores", "memory_mib", "page_kib", "channels", "routes", "burst", "descriptors")),
    forwards_white_paper=True,
    carried=vxlan.carried,
    most_in_mode=vxlan.LARGEST,
    choices={
        "mode": ("route", "xconnect", "bridge", vxlan.MODE),
        "lookup": ("route", "flow"),
        "idle": (OWN_DEFAULT, "poll", "sleep"),
        "wire": ("memif", "veth", "vhost"),
    },
)
