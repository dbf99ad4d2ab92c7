"""Packets taken out of VXLAN and routed, by dl3d beside Open vSwitch: all frames come from a remote end, to the router.

Only Linux gives a VXLAN device of dl3d an address, so its route, device and neighbour are told to Linux, as to Open
vSwitch, whose flow stands for the route. The outer UDP headers have no checksum, as Open vSwitch sends them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from dl3.bench.bridges import Configured, KnownOnly, known_only, ovs_settings
from dl3.bench.forwarder import LAST_MAC, PORT_OUT, Settings
from dl3.bench.norow import NoRow
from dl3.bench.onecore import FIRST_MAC, Job
from dl3.bench.sides import (
    TWO_PORTS,
    Contestant,
    Entry,
    PairSettings,
    job_of,
    march_of_build,
    march_of_distribution,
)
from dl3.bench.taps import Told, commands, write_tapped_config
from dl3.bench.vxlans import (
    LENGTH,
    LOCAL,
    LOCAL_MAC,
    PEERS,
    REMOTE,
    REMOTE_MAC,
    UDP_PORT,
    UNDERLAY,
    VNI,
    add_underlay,
    outer_file,
    remote_words,
    underlay_words,
)
from dl3.bench.workplace import BUILD, TABLES, Workplace, built
from dl3.dut.vswitch import BRIDGE, Vswitch, needs
from dl3.host.private import private_folder
from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import end_all
from dl3.lab.tables import FRAME_BYTES, TableFiles, next_hop_mac

PORT_IN = "in"
DEVICE = "vxlan0"  # of Linux; its address is that of the router in the VNI
OWN_NETWORK = "10.9.0.1/24"
FEW = 4096  # flows of Open vSwitch's datapath: there is one
ROW_OF_DECAP = (
    f"all frames are decapsulated and routed: {FRAME_BYTES} bytes in VXLAN over IPv4 without UDP checksum, one route; "
    "dl3d: device, route and neighbour told to Linux and mirrored, a count for each port, device and verdict; "
    f"{PEERS.replace('action NORMAL, whose result', 'a flow that rewrites the MAC addresses and the TTL, which')}"
)


def lines(files: TableFiles, n_hops: int) -> str:
    """For `ip -batch`: the device and what is behind the other port."""
    device = f"local {LOCAL} remote {REMOTE} dstport {UDP_PORT} noudpcsum"
    own = [
        f"address add {LOCAL}/{LENGTH} dev {PORT_IN}",
        f"neighbour add {REMOTE} lladdr {REMOTE_MAC} dev {PORT_IN}",
        f"link add {DEVICE} address {FIRST_MAC} type vxlan id {VNI} {device}",
        f"link set dev {DEVICE} up",
        f"address add {OWN_NETWORK} dev {DEVICE}",
    ]
    return "".join(f"{line}\n" for line in own) + commands(files, n_hops)


def job_of_decap(entry: Entry, terms: PairSettings, command: tuple[str, ...]) -> Job:
    """All frames are in VXLAN; those inside are to the router."""
    return replace(job_of(entry, terms, command), outer=outer_file())


def make_decap_dl3d(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d with Linux as its control plane."""
    settings = Settings(terms.core, terms.burst, entry.n_hops, terms.descriptors, memory_mib=terms.memory_mib)
    files = TableFiles(entry.routes, TABLES)
    path, socket = write_tapped_config(settings, files, place)
    whole: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    whole["ports"] = [port | ({"mac": LOCAL_MAC} if port["name"] == PORT_IN else {}) for port in whole["ports"]]
    path.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    program = built(BUILD / folder / "src" / "dl3d", "make")
    told = Told(socket, lines(files, entry.n_hops))
    job = replace(job_of_decap(entry, terms, (str(program), str(path))), begin=told)
    return Contestant(job, march_of_build(folder), lambda: known_only(job, place))


def port_words(terms: PairSettings) -> list[str]:
    """For ovs-vsctl: one port of either bridge, and the remote end."""
    words: list[str] = []
    for i, (bridge, name) in enumerate(((UNDERLAY, PORT_IN), (BRIDGE, PORT_OUT))):
        options = (f"options:dpdk-devargs={TWO_PORTS[i].partition(',')[0]}", f"ofport_request={i + 1}")
        rings = (f"options:n_rxq_desc={terms.descriptors}", f"options:n_txq_desc={terms.descriptors}")
        words += ["--", "add-port", bridge, name, "--", "set", "Interface", name, "type=dpdk", *options, *rings]
    return [*words, *remote_words()]


ROUTE = f"in_port=remote,ip,actions=mod_dl_src:{LAST_MAC},mod_dl_dst:{next_hop_mac(0)},dec_ttl,output:{PORT_OUT}"


@dataclass
class ConfiguredRoute(Configured):
    """Whether Open vSwitch has its ports, its flows, and what is around packets; called again until it has."""

    namespace: Namespace = field(kw_only=True)

    def __call__(self) -> bool:
        """Configure it when it has started; Fault if it cannot be."""
        if not self.has_ports:
            self.go_on()
            if self.has_ports:
                add_underlay(self.own, self.namespace, PORT_IN)
        return self.has_ports

    def add_bridges(self) -> None:
        """Create both; what has no flow is dropped."""
        words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure"]
        self.own.vsctl("--no-wait", *words, *underlay_words())

    def add_ports(self) -> None:
        """Add their ports."""
        self.own.vsctl("--no-wait", *port_words(self.terms))

    def add_flows(self) -> None:
        """They name ports, so they come after them."""

    def go_on(self) -> None:
        """See Configured."""
        super().go_on()
        if self.has_ports:
            self.own.ofctl("add-flow", ROUTE)


@contextmanager
def ovs_started(entry: Entry, terms: PairSettings, place: Workplace) -> Iterator[KnownOnly]:
    """Its bridges have interfaces in Linux, so it runs in a namespace."""
    with Lab() as lab, private_folder() as folder:
        own, namespace = Vswitch(folder), lab.namespace("ovs", silent=True)
        server = own.start_server(ovs_settings(terms, place, FEW, TWO_PORTS))
        try:
            known = ConfiguredRoute(own, entry, terms, ports=(PORT_IN, PORT_OUT), namespace=namespace)
            job = replace(job_of_decap(entry, terms, tuple(namespace.command(*own.command))), begin=known)
            with known_only(job, place) as running:
                yield running
        finally:
            end_all([server])


def make_decap_ovs(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's Open vSwitch."""
    if reason := needs():
        raise NoRow(f"no comparison of VXLAN: {reason}")
    job = job_of_decap(entry, terms, Vswitch(place.folder).command)
    return Contestant(job, march_of_distribution(), lambda: ovs_started(entry, terms, place))
