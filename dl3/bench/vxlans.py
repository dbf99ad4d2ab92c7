"""VXLAN in a bridge of dl3d beside Open vSwitch's: hosts behind a port talk to hosts behind a remote end.

Both programs have learnt all addresses, half of them behind the remote end, before they are measured. The outer UDP
headers have no checksum, as Open vSwitch sends them.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dl3.bench.bridges import DEVICES, PORTS, Configured, KnownOnly, Learnt, job_of_macs, known_only, ovs_settings
from dl3.bench.bridges import bridge_config as bridge_alone
from dl3.bench.bridges import bridge_words as words_alone
from dl3.bench.forwarder import write_file
from dl3.bench.macs import MAC_SETS
from dl3.bench.norow import NoRow
from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry, PairSettings, march_of_build, march_of_distribution
from dl3.bench.workplace import BUILD, TABLES, Workplace, built
from dl3.dut.vswitch import BRIDGE, OWN_BURST, Vswitch, needs
from dl3.host.private import private_folder
from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import end_all
from dl3.lab.tables import FRAME_BYTES, VERSION, kept, ones_sum

UNDERLAY = "underlay"  # Open vSwitch's other bridge, which has the local address
LOCAL, REMOTE, LENGTH = "192.0.2.1", "192.0.2.2", 24
LOCAL_MAC, REMOTE_MAC = "02:00:00:00:02:01", "02:00:00:00:02:02"
VNI, UDP_PORT = 100, 4789
LEFT, UP, THIRD = PORTS  # hosts, the underlay, and a port that gets nothing unless frames are flooded
BOTH_WAYS, OUT_ONLY = "both ways", "out"

HOSTS = f"{FRAME_BYTES}-byte frames between learnt MAC addresses, half of them behind a remote end; VXLAN over IPv4 without UDP checksum; "
OURS = "dl3d: one hash table, outer headers by remote end, a count for each port and verdict"
PEERS = (
    "Open vSwitch: action NORMAL, whose result is cached in a datapath flow for each pair of addresses, and a second "
    f"lookup for what is taken out; bursts of {OWN_BURST}; packets and bytes of each flow counted"
)
ROW_OF_BRIDGE = f"{HOSTS}half of the frames are encapsulated, half are decapsulated; {OURS}; {PEERS}"
ROW_OF_VXLAN_ENCAP = f"{HOSTS}all frames are encapsulated; {OURS}; {PEERS}"


def mac_of(text: str) -> bytes:
    """Six bytes."""
    return bytes.fromhex(text.replace(":", ""))


def address_of(text: str) -> bytes:
    """Four bytes."""
    return bytes(int(part) for part in text.split("."))


def outer_headers() -> bytes:
    """From the remote end to the router; the plugin sets the UDP source port."""
    udp_bytes = 8 + 8 + FRAME_BYTES
    ends = address_of(REMOTE) + address_of(LOCAL)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + udp_bytes, 0, 0x4000, 64, 17, 0) + ends
    ip = ip[:10] + struct.pack("!H", ones_sum(ip) ^ 0xFFFF) + ip[12:]
    udp = struct.pack("!4H", 0, UDP_PORT, udp_bytes, 0)
    vxlan = struct.pack("!II", 0x08000000, VNI << 8)
    return mac_of(LOCAL_MAC) + mac_of(REMOTE_MAC) + b"\x08\x00" + ip + udp + vxlan


def outer_file() -> Path:
    """The plugin's file of outer headers."""
    return kept(TABLES / f"vxlan.{VERSION}.outer", outer_headers)


@dataclass
class Begun:
    """Ends the way back, if the row has none, as soon as all addresses are known."""

    is_known: Learnt | Configured
    until: Path | None

    def __call__(self) -> bool:
        """Whether they are."""
        if not self.is_known():
            return False
        if self.until:
            self.until.touch()
        return True


def job_of_vxlan(
    entry: Entry, terms: PairSettings, place: Workplace, command: tuple[str, ...], is_known: Learnt | Configured
) -> Job:
    """Frames arrive on the first port, and encapsulated on the second: in a row of one way, only until all are known."""
    until = place.folder / f"{place.next_number()}.known" if entry.mode == OUT_ONLY else None
    job = job_of_macs(entry, terms, command, Begun(is_known, until))
    return replace(job, outer=outer_file(), back_until=until)


def vxlan_config(entry: Entry, terms: PairSettings, place: Workplace, socket: Path) -> dict[str, object]:
    """dl3d's file: a bridge of two ports and the remote end, which is behind the other port."""
    whole: dict[str, Any] = bridge_alone(entry, terms, place, socket)
    (bridge,) = whole["bridges"]
    underlay = {"mac": LOCAL_MAC, "addresses": [f"{LOCAL}/{LENGTH}"]}
    vxlan = {"vni": VNI, "local": LOCAL, "remotes": [REMOTE], "udp_checksum": "off"}
    return {
        **whole,
        "ports": [port | (underlay if port["name"] == UP else {}) for port in whole["ports"]],
        "bridges": [bridge | {"ports": [LEFT, THIRD], "vxlan": vxlan}],
        "neighbours": [f"{REMOTE} lladdr {REMOTE_MAC} dev {UP}"],
    }


def make_vxlan_dl3d(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d of one of our builds."""
    program, socket = built(BUILD / folder / "src" / "dl3d", "make"), place.folder / f"{place.next_number()}.sock"
    whole, known = vxlan_config(entry, terms, place, socket), Learnt(socket, MAC_SETS[entry.macs].number)
    job = job_of_vxlan(entry, terms, place, (str(program), str(write_file(whole, place))), known)
    return Contestant(job, march_of_build(folder), lambda: known_only(job, place))


def underlay_words() -> list[str]:
    """For ovs-vsctl: the bridge of the underlay."""
    words = ["--", "add-br", UNDERLAY, "--", "set", "bridge", UNDERLAY, "datapath_type=netdev", "fail-mode=secure"]
    return [*words, f'other_config:hwaddr="{LOCAL_MAC}"']


def port_words(terms: PairSettings) -> list[str]:
    """For ovs-vsctl: ports of both bridges, and the remote end."""
    words: list[str] = []
    for i, (name, device) in enumerate(zip(PORTS, DEVICES, strict=True)):
        options = (f"options:dpdk-devargs={device.partition(',')[0]}", f"ofport_request={i + 1}")
        rings = (f"options:n_rxq_desc={terms.descriptors}", f"options:n_txq_desc={terms.descriptors}")
        bridge = UNDERLAY if name == UP else BRIDGE
        words += ["--", "add-port", bridge, name, "--", "set", "Interface", name, "type=dpdk", *options, *rings]
    return [*words, *remote_words()]


def remote_words() -> list[str]:
    """For ovs-vsctl: the remote end."""
    ends = (f"options:remote_ip={REMOTE}", f"options:local_ip={LOCAL}", f"options:key={VNI}", "options:csum=false")
    return ["--", "add-port", BRIDGE, "remote", "--", "set", "Interface", "remote", "type=vxlan", *ends]


def add_underlay(own: Vswitch, namespace: Namespace | None, port: str) -> None:
    """The route to the remote end is that of the address; the neighbour never ages while it is measured."""
    if namespace:
        namespace.ip("address", "replace", f"{LOCAL}/{LENGTH}", "dev", UNDERLAY)
        namespace.ip("link", "set", "dev", UNDERLAY, "up")
    for flow in (f"in_port={port},actions=LOCAL", f"in_port=LOCAL,actions={port}"):
        own.ofctl_of(UNDERLAY, "add-flow", flow)
    own.appctl("tnl/neigh/aging", "3600")
    own.appctl("tnl/neigh/set", UNDERLAY, REMOTE, REMOTE_MAC)


@dataclass
class ConfiguredVxlan(Configured):
    """The same with two bridges: the one of hosts, and that of the underlay, whose address Linux has."""

    namespace: Namespace | None = field(default=None, kw_only=True)
    has_underlay: bool = field(default=False, kw_only=True)

    def add_bridges(self) -> None:
        """Create both."""
        self.own.vsctl("--no-wait", *words_alone(MAC_SETS[self.entry.macs].number), *underlay_words())

    def add_ports(self) -> None:
        """Add their ports."""
        self.own.vsctl("--no-wait", *port_words(self.terms))

    def go_on(self) -> None:
        """As soon as all ports are there, the underlay gets its address, flows and neighbour."""
        super().go_on()
        if self.has_ports and not self.has_underlay:
            add_underlay(self.own, self.namespace, UP)
            self.has_underlay = True


@contextmanager
def ovs_started(entry: Entry, terms: PairSettings, place: Workplace) -> Iterator[KnownOnly]:
    """Its bridges have interfaces in Linux, so it runs in a namespace."""
    with Lab() as lab, private_folder() as folder:
        own, namespace = Vswitch(folder), lab.namespace("ovs", silent=True)
        server = own.start_server(ovs_settings(terms, place, MAC_SETS[entry.macs].number))
        try:
            known = ConfiguredVxlan(own, entry, terms, namespace=namespace)
            job = job_of_vxlan(entry, terms, place, tuple(namespace.command(*own.command)), known)
            with known_only(job, place) as running:
                yield running
        finally:
            end_all([server])


def make_vxlan_ovs(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's Open vSwitch."""
    if reason := needs():
        raise NoRow(f"no comparison of VXLAN: {reason}")
    job = job_of_macs(entry, terms, Vswitch(place.folder).command, None)
    return Contestant(job, march_of_distribution(), lambda: ovs_started(entry, terms, place))
