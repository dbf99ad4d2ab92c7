"""dl3d with TAP interfaces between dl3gen's memif links, optionally with further ports on cables to real neighbours."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dl3.control.client import Client
from dl3.control.generator import Results, Started
from dl3.control.linux import Taps, Verification
from dl3.control.replies import Drops, Ports, Reply
from dl3.lab.endpoint import Endpoint
from dl3.lab.links import DUT_MACS, GENERATOR_MACS, NAMES, NETWORKS
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.lab.namespace import End, Lab, Namespace
from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.trial.account import total
from dl3.trial.passage import Passage
from harness.answers import CORES, at_rest
from harness.router import SETTINGS, port_name, router_mac
from harness.scheduling import OURSELVES, raised_priority
from harness.wire import wait_until
from harness.wired import BUILD, DL3D

# Not those of the static lab: routers around it have their own in 10.0.0.0/16.
LINK_ADDRESSES = {4: "172.16.{}.{}", 6: "2001:db8:e{}::{}"}
LENGTHS = {4: 24, 6: 64}
BEHIND = {4: NETWORKS, 6: ("2001:2:0:1::/64", "2001:2:0:2::/64")}  # the networks behind each link
POLL_S, PATIENCE_S = 0.2, 60.0
LONGEST_S = 600.0
N_FIRST = 2  # number of dl3gen's own host on a link; dl3d is 1, others may follow


def link_address(family: int, link: int, number: int = N_FIRST) -> str:
    """Address of a host on left (0) or right (1)."""
    return LINK_ADDRESSES[family].format(link + 1, number)


@dataclass(frozen=True)
class TwinnedDl3d:
    """dl3d with TAP interfaces in `taps`: ports left and right on memif, others on the cables that end in `wires`."""

    taps: Namespace
    wires: Namespace
    cables: Sequence[str] = ()
    name: str = "dl3d"
    ready_words: str = ""

    def file(self, endpoint: Endpoint) -> dict[str, Any]:
        """The configuration of dl3d."""
        devices = endpoint.links.devices("server")
        ports = [{"name": NAMES[i], "device": devices[i], "mac": DUT_MACS[i]} for i in range(2)]
        ports += [
            {"name": cable, "device": f"net_af_packet{i},iface={cable},framecnt=4096", "mac": router_mac(i)}
            for i, cable in enumerate(self.cables)
        ]
        return {
            "linux": {"namespace": self.taps.name, "keep": False},
            "ports": ports,
            "workers": [{"core": endpoint.core}],
            "burst": endpoint.burst,
            "memory": {"hugepages": "require", "mib": endpoint.memory_mib},
            "control": {"socket": str(self.socket(endpoint))},
        }

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """dl3d with its own configuration file, in the namespace where the cables end."""
        path = endpoint.links.folder / "dl3d.yaml"
        path.write_text(yaml.safe_dump(self.file(endpoint), sort_keys=False), encoding="utf-8")
        return self.wires.enter(str(DL3D), str(path))

    def socket(self, endpoint: Endpoint) -> Path:
        """A path in the private folder."""
        return endpoint.links.folder / "dl3d.sock"


def configure_links(taps: Namespace) -> None:
    """Addresses, the networks behind each link, and static neighbours, which do not answer ARP."""
    for i, name in enumerate(NAMES):
        for family, length in LENGTHS.items():
            host = link_address(family, i)
            taps.ip("address", "add", f"{link_address(family, i, 1)}/{length}", "dev", name)
            taps.ip("neighbour", "replace", host, "lladdr", GENERATOR_MACS[i], "dev", name)
            taps.ip("route", "add", BEHIND[family][i], "via", host)


@dataclass(frozen=True)
class Site:
    """The namespaces of the TAP interfaces and the cable ends of a dl3d; created before dl3d."""

    lab: Lab
    taps: Namespace
    wires: Namespace

    @classmethod
    def made(cls, lab: Lab) -> "Site":
        """Creates the namespaces; that of the TAP interfaces is configured as a router."""
        site = cls(lab, lab.namespace("router"), lab.namespace("wires", silent=True))
        site.taps.run("sysctl", "-qw", *(f"{key}={value}" for key, value in SETTINGS.items()))
        return site

    def end(self, link: int) -> End:
        """Where the cable of port p0, p1... ends."""
        return End(self.wires, port_name(link), router_mac(link))

    @property
    def namespace(self) -> Namespace:
        """Where daemons run."""
        return self.taps


def differences(dut: Client) -> list[str]:
    """The result of verify; an error (such as a dump in progress) counts as one difference."""
    try:
        return list(dut.ask(Verification, "verify").listed)
    except Fault as error:
        return [str(error)]


def is_closed(account: Drops) -> bool:
    """Received + injected + copied = sent + punted + dropped."""
    return account.received + account.injected + account.copied == account.sent + account.punted + account.dropped


def closed_account(dut: Client) -> Drops:
    """The accounting at a moment with no packets in flight; with running daemons such a moment comes soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_closed(account := dut.ask(Drops, "drops")):
        assert time.monotonic() < deadline, f"packets are missing: {account}"
        time.sleep(0.01)
    return account


class Traffic:
    """Streams for the duration of a block, then the accounting of both sides. Other traffic may run all the time."""

    def __init__(self, lab: MemifLab, streams: Sequence[Stream], seconds: float = LONGEST_S) -> None:
        assert lab.dut
        self._lab, self._dut, self._streams, self._seconds = lab, lab.dut, streams, seconds
        self.results: Results
        self.passage: Passage

    def wait(self) -> None:
        """Until everything is sent."""
        while self._results().state == "sending":
            time.sleep(POLL_S)

    def __enter__(self) -> "Traffic":
        self._before, self._n_before = closed_account(self._dut), self._n_come()
        written = [each.written() for each in self._streams]
        self._lab.generator.ask(Started, "send", streams=written, seconds=self._seconds, delay=0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._lab.generator.ask(Reply, "halt")
        self.wait()
        wait_until(self._has_come, "dl3d had received what dl3gen sent")
        after = closed_account(self._dut)
        self.results, self.passage = at_rest(self._results), Passage.between(self._before, after)

    def _results(self) -> Results:
        return self._lab.generator.ask(Results, "results")

    def _n_come(self) -> int:
        """The frames that dl3d has received from dl3gen so far."""
        return sum(port.rx_packets for port in self._dut.ask(Ports, "ports").ports if port.name in NAMES)

    def _has_come(self) -> bool:
        """A link loses no frame that it has taken."""
        streams = self._results().streams
        return self._n_come() - self._n_before == total(streams, "sent") - total(streams, "refused")


def sent(lab: MemifLab, streams: Sequence[Stream], seconds: float) -> tuple[Results, Passage]:
    """Send to the end, for at most this long; returns the accounting of both sides."""
    with Traffic(lab, streams, seconds) as traffic:
        traffic.wait()
    return traffic.results, traffic.passage


def settle(dut: Client) -> None:
    """Return once workers use what Linux has."""
    wait_until(lambda: not differences(dut), f"dl3d followed Linux: {differences(dut)[:5]}")


def _have_carrier(lab: MemifLab) -> bool:
    assert lab.dut
    return all(tap.carrier for tap in lab.dut.ask(Taps, "taps").taps)


@contextmanager
def tap_lab(site: Site, cables: Sequence[str] = ()) -> Iterator[MemifLab]:
    """dl3gen and such a dl3d, one core each; the cable ends already exist."""
    dut = TwinnedDl3d(site.taps, site.wires, cables)
    terms = MemifSettings(dut=dut, build=BUILD, generator_core=CORES[0], dut_cores=(CORES[-1],))
    with memif_lab(terms) as made:
        assert made.dut
        wait_until(lambda: _have_carrier(made), "the TAP interfaces had their carrier")
        configure_links(site.taps)
        settle(made.dut)
        with raised_priority(
            {OURSELVES: -20, str(made.dut_process.process.pid): -20, str(made.generator_process.process.pid): -10}
        ):
            yield made
            made.check_alive()  # otherwise, report its last output
