"""Bridges: dl3d's beside Open vSwitch and testpmd, with the same frames, which go both ways between two ports.

Every frame is of a host that the bridge has learnt, and to one that it has learnt. A third port, on which nothing
arrives, shows that: if an address were not known, a copy would leave by it, and more frames would be sent than received.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dl3.bench import onecore
from dl3.bench.forwarder import Settings, base, write_file
from dl3.bench.macs import MAC_SETS, VENDOR, addresses, table_of, text_of
from dl3.bench.norow import NoRow
from dl3.bench.onecore import Job, Runner
from dl3.bench.sides import Contestant, Entry, PairSettings, eal, job_of, march_of_build, march_of_distribution
from dl3.bench.workplace import BUILD, Workplace, built
from dl3.control.bridge_replies import Bridges
from dl3.control.client import Client
from dl3.dut.vswitch import BRIDGE, OWN_BURST, Vswitch, needs
from dl3.host.private import private_folder
from dl3.lab.namespace import Lab, Namespace
from dl3.lab.process import end_all
from dl3.model.fault import Fault
from dl3.model.sample import Sample

PORTS = ("left", "right", "third")
BOTH_WAYS = ("net_null0", "net_null1")
DEVICES = (*BOTH_WAYS, "net_null2,no-rx=1")
LONGEST_S = 3600  # without a frame, while the other side is measured
MOST_DIFFERENCE = 0.01  # sent / received; the plugin does not read both numbers at the same time
TRIES = 3
PATIENCE_S = 240.0
ENTRIES = re.compile(r"MAC entries in the table: (\d+)/")
FLOWS = re.compile(r"flows: (\d+)")
COUNT = re.compile(r"flow_count=(\d+)")
SAME_S = 5.0  # without a new flow in the datapath of Open vSwitch, after which no more are expected

HOSTS = "64-byte frames between learnt MAC addresses, half of them behind each of two ports, both ways; both addresses are looked up; "
OURS = "dl3d: one hash table, a count for each port and verdict"
ROW_OF_NORMAL = (
    f"{HOSTS}{OURS}; Open vSwitch: action NORMAL, whose result is cached in a datapath flow for each pair of addresses; "
    f"bursts of {OWN_BURST}; packets and bytes of each flow counted"
)
ROW_OF_STATIC = (
    f"{HOSTS}{OURS}; Open vSwitch: a flow for each destination, which the frames hit in its datapath; "
    f"bursts of {OWN_BURST}; packets and bytes of each flow counted"
)
ROW_OF_IO = f"{HOSTS}{OURS}; testpmd io: hands frames from port to port without reading them"


@dataclass
class KnownOnly:
    """A started bridge whose samples count only if each frame that it got left by one port."""

    runner: Runner

    def pause(self) -> None:
        """Suspend."""
        self.runner.pause()

    def resume(self) -> None:
        """Resume."""
        self.runner.resume()

    def measure(self, seconds: float) -> Sample:
        """NoRow if frames were flooded or dropped, again and again."""
        for _ in range(TRIES - 1):
            sample = self.runner.measure(seconds)
            if is_even(sample):
                return sample
        sample = self.runner.measure(seconds)
        check_even(self.runner.job.name, sample)
        return sample


def ratio_of(sample: Sample) -> float:
    """Sent / received."""
    return sample.sent_pps / sample.received_pps if sample.received_pps else 0.0


def is_even(sample: Sample) -> bool:
    """Whether as many frames were sent as received."""
    return abs(ratio_of(sample) - 1) <= MOST_DIFFERENCE


def check_even(name: str, sample: Sample) -> None:
    """NoRow unless as many frames were sent as received."""
    if not is_even(sample):
        ratio = ratio_of(sample)
        why = "flooded frames to addresses that it did not know" if ratio > 1 else "dropped frames"
        raise NoRow(f"no comparison of bridges: {name} sent {ratio:.3f} frames for each that it got, so it {why}")


@contextmanager
def known_only(job: Job, place: Workplace) -> Iterator[KnownOnly]:
    """Start a program that forwards all of it."""
    with onecore.started(job, place) as runner:
        yield KnownOnly(runner)


def job_of_macs(entry: Entry, terms: PairSettings, command: tuple[str, ...], begin: Callable[[], bool] | None) -> Job:
    """Frames arrive on the first two ports."""
    return replace(job_of(entry, terms, command), table=table_of(entry.macs), back_port=1, begin=begin)


@dataclass(frozen=True)
class Learnt:
    """Whether dl3d has learnt all addresses; called again until it has."""

    socket: Path
    wanted: int

    def __call__(self) -> bool:
        """True as soon as it knows that many."""
        try:
            (bridge,) = Client(self.socket).ask(Bridges, "bridges").bridges
        except Fault:
            return False
        return bridge.learnt_macs == self.wanted


def bridge_config(entry: Entry, terms: PairSettings, place: Workplace, socket: Path) -> dict[str, object]:
    """dl3d's file: a bridge without addresses of its own."""
    rings = {"rx_descriptors": terms.descriptors, "tx_descriptors": terms.descriptors}
    settings = Settings(terms.core, terms.burst, descriptors=terms.descriptors, memory_mib=terms.memory_mib)
    bridge = {"name": BRIDGE, "ports": list(PORTS), "max_macs": MAC_SETS[entry.macs].number, "ageing": LONGEST_S}
    ports = [{"name": name, "device": device, **rings} for name, device in zip(PORTS, DEVICES, strict=True)]
    return {"ports": ports, "bridges": [bridge], **base(settings, place), "control": {"socket": str(socket)}}


def make_bridge_dl3d(folder: str, entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """dl3d of one of our builds."""
    program, socket = built(BUILD / folder / "src" / "dl3d", "make"), place.folder / f"{place.next_number()}.sock"
    whole, ready = bridge_config(entry, terms, place, socket), Learnt(socket, MAC_SETS[entry.macs].number)
    job = job_of_macs(entry, terms, (str(program), str(write_file(whole, place))), ready)
    return Contestant(job, march_of_build(folder), lambda: known_only(job, place))


def make_bridge_testpmd(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's testpmd, which hands on what it gets; without the third port, which it could not pair."""
    command = (
        *("dpdk-testpmd", *eal(terms, place, f"0@{terms.core},1@{terms.core}", BOTH_WAYS)),
        *("--nb-cores=1", "--forward-mode=io", f"--burst={terms.burst}", "--no-lsc-interrupt", "--auto-start"),
        *(f"--rxd={terms.descriptors}", f"--txd={terms.descriptors}"),
    )
    job = job_of_macs(entry, terms, command, None)
    return Contestant(job, march_of_distribution(), lambda: known_only(job, place))


def ovs_settings(
    terms: PairSettings, place: Workplace, number: int, its_devices: Sequence[str] = DEVICES
) -> dict[str, str]:
    """All threads on one core; limits that a million addresses do not reach, and no flow is idle while it is stopped."""
    devices = " ".join(f"--vdev {device}" for device in its_devices)
    prefix = f"--file-prefix dl3-peer{place.next_number()}"
    return {
        "dpdk-init": "true",
        "dpdk-socket-mem": str(terms.memory_mib),
        "dpdk-socket-limit": str(terms.memory_mib),
        "pmd-cpu-mask": f"0x{1 << terms.core:x}",
        "dpdk-lcore-mask": f"0x{1 << terms.core:x}",
        "dpdk-extra": f'"--no-pci --in-memory --no-telemetry {prefix} -d {place.plugin} {devices}"',
        "flow-limit": str(2 * number),
        "max-idle": str(LONGEST_S * 1000),
        "n-handler-threads": "1",
        "n-revalidator-threads": "1",
    }


def bridge_words(number: int) -> list[str]:
    """For ovs-vsctl: a user-space bridge."""
    words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev", "fail-mode=secure"]
    return [*words, f"other_config:mac-table-size={number}", f"other_config:mac-aging-time={LONGEST_S}"]


def port_words(terms: PairSettings) -> list[str]:
    """For ovs-vsctl: its three ports."""
    words: list[str] = []
    for i, (name, device) in enumerate(zip(PORTS, DEVICES, strict=True)):
        options = (f"options:dpdk-devargs={device.partition(',')[0]}", f"ofport_request={i + 1}")
        rings = (f"options:n_rxq_desc={terms.descriptors}", f"options:n_txq_desc={terms.descriptors}")
        words += ["--", "add-port", BRIDGE, name, "--", "set", "Interface", name, "type=dpdk", *options, *rings]
    return words


def flow_lines(entry: Entry) -> list[str]:
    """OpenFlow flows: NORMAL for our frames, which learns, or one for each destination; all others are dropped."""
    if entry.mode != "static":
        return [f"dl_src={text_of(VENDOR + bytes(3))}/ff:ff:ff:00:00:00,actions=NORMAL"]
    known, half = addresses(entry.macs), MAC_SETS[entry.macs].n_pairs
    return [f"dl_dst={text_of(mac)},actions=output:{1 if i < half else 2}" for i, mac in enumerate(known)]


def count_in(pattern: re.Pattern[str], text: str) -> int:
    """The number that a command printed; 0 if it printed none."""
    found = pattern.search(text)
    return int(found[1]) if found else 0


@dataclass
class Configured:
    """Whether Open vSwitch has all addresses and its datapath a flow for each pair; called again until it has.

    It stops adding flows to its datapath when its threads take too long to look after them, so at some number of
    addresses they never get all. Then it is measured as it is.
    """

    own: Vswitch
    entry: Entry
    terms: PairSettings
    begun_at: float = 0.0  # 0: it has no bridge yet
    has_flows: bool = False  # of OpenFlow
    has_ports: bool = False
    n_flows: int = 0  # the most that its datapath has had
    grown_at: float = 0.0
    ports: tuple[str, ...] = PORTS

    def __call__(self) -> bool:
        """Configure it when it has started; Fault if it cannot be."""
        if not self.has_ports:
            self.go_on()
            return False
        wanted, known, now = MAC_SETS[self.entry.macs].number, self.n_known(), time.monotonic()
        if known < wanted:
            self.check_patience(known, now)
            return False
        if (n_flows := count_in(FLOWS, self.own.appctl("dpctl/show"))) > self.n_flows:
            self.n_flows, self.grown_at = n_flows, now
        return self.n_flows >= wanted or now - self.grown_at > SAME_S

    def check_patience(self, known: int, now: float) -> None:
        """NoRow if it has had enough time to learn all addresses."""
        if now - self.begun_at > PATIENCE_S:
            wanted = MAC_SETS[self.entry.macs].number
            raise NoRow(
                f"no comparison of bridges: Open vSwitch knew {known:,} of {wanted:,} addresses after {PATIENCE_S:.0f} s"
            )

    def go_on(self) -> None:
        """Create the bridge, then its flows, then its ports: as soon as it has ports, it is busy with frames."""
        if not self.begun_at:
            if self.own.control.exists():
                self.add_bridges()
                self.begun_at = time.monotonic()
        elif not self.has_flows:
            if self.own.openflow.exists():
                self.add_flows()
                self.add_ports()
                self.has_flows = True
        elif wrong := self.own.wrong_port(*self.ports):
            raise Fault(f"Open vSwitch: {wrong}")
        else:
            numbers = [self.own.vsctl("get", "Interface", name, "ofport").strip() for name in self.ports]
            self.has_ports = numbers == [str(1 + i) for i in range(len(self.ports))]

    def add_bridges(self) -> None:
        """Create the bridge."""
        self.own.vsctl("--no-wait", *bridge_words(MAC_SETS[self.entry.macs].number))

    def add_ports(self) -> None:
        """Add its ports."""
        self.own.vsctl("--no-wait", *port_words(self.terms))

    def add_flows(self) -> None:
        """Add its OpenFlow flows."""
        file = self.own.folder / "flows"
        file.write_text("\n".join(flow_lines(self.entry)) + "\n", encoding="ascii")
        self.own.ofctl("add-flows", str(file))

    def n_known(self) -> int:
        """Addresses learnt, or flows for them."""
        if self.entry.mode != "static":
            return count_in(ENTRIES, self.own.appctl("fdb/stats-show", BRIDGE))
        return count_in(COUNT, self.own.ofctl("dump-aggregate"))


@contextmanager
def ovs_started(entry: Entry, terms: PairSettings, place: Workplace) -> Iterator[KnownOnly]:
    """Its bridge has an interface in Linux, so it runs in a namespace."""
    with Lab() as lab, private_folder() as folder:
        own = Vswitch(folder)
        server = own.start_server(ovs_settings(terms, place, MAC_SETS[entry.macs].number))
        try:
            job = ovs_job(entry, terms, own, lab.namespace("ovs", silent=True))
            with known_only(job, place) as running:
                yield running
        finally:
            end_all([server])


def ovs_job(entry: Entry, terms: PairSettings, own: Vswitch, namespace: Namespace) -> Job:
    """The command, and what is to be done when it runs."""
    return job_of_macs(entry, terms, tuple(namespace.command(*own.command)), Configured(own, entry, terms))


def make_bridge_ovs(entry: Entry, terms: PairSettings, place: Workplace) -> Contestant:
    """The distribution's Open vSwitch in mode 'normal' or 'static'."""
    if reason := needs():
        raise NoRow(f"no comparison of bridges: {reason}")
    job = job_of_macs(entry, terms, Vswitch(place.folder).command, None)
    return Contestant(job, march_of_distribution(), lambda: ovs_started(entry, terms, place))
