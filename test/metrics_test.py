"""A real Prometheus reads dl3d and dl3gen while frames flow: its figures are dl3gen's, whatever the size of the tables."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN
from harness.prometheus import JOB, Prometheus, prometheus, promtool
from harness.shell import batch
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Port, config_text

from dl3.control.generator import Results
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.lab.namespace import End, Lab
from dl3.lab.program import Surroundings
from dl3.metrics.dashboard import dashboard

SIDES = ("left", "right")
FRAMES = 3000  # fewer than a ring has slots: none is lost, however long a program waits for a core
DEVICE = "net_af_packet{index},iface={name},framecnt=4096"
BATCH = 50_000
ROUTES = 1 << 20  # from this number on in the long test, which may run after the short one
SAMPLES = f'scrape_samples_scraped{{job="{JOB}"}}'


def _mac(where: int, side: int) -> str:
    """Of dl3gen (0), dl3d (1)."""
    return f"02:00:00:00:{where:02x}:{side + 1:02x}"


def _stream() -> dict[str, Any]:
    return {
        "name": "east",
        "from": "left",
        "to": "right",
        "src_mac": _mac(0, 0),
        "dst_mac": _mac(1, 0),
        "src_ip": "10.0.0.2",
        "dst_ip": {"first": "198.19.0.1", "count": 16},
        "rate": "1 kpps",
        "frames": FRAMES,
        "catch_up": 16384,
    }


@dataclass(frozen=True)
class Bed:
    """dl3gen on both sides of a dl3d with Linux as control plane, and Prometheus, which reads both."""

    dl3gen: Generator
    dl3d: Forwarder
    prometheus: Prometheus

    def run(self) -> Results:
        """Send all frames; return when they are back."""
        self.dl3gen.send(streams=[_stream()])
        wait_until(lambda: self.dl3gen.results().state == "done", "dl3gen had sent everything")
        wait_until(lambda: self.dl3gen.results().streams[0].received == FRAMES, "all frames were back")
        return self.dl3gen.results()

    def route(self, first: int, number: int) -> None:
        """Add so many routes in Linux."""
        for start in range(first, first + number, BATCH):
            numbers = range(start, start + BATCH)
            batch(
                self.dl3d.taps,
                (f"route add {40 + (n >> 16 & 127)}.{n >> 8 & 255}.{n & 255}/32 via 10.0.1.2" for n in numbers),
            )


def _forwarder(lab: Lab, generator_side: list[End]) -> Forwarder:
    """The third port is one whose device counts everything that a device can lose."""
    inside = lab.namespace("dl3d", silent=True)
    for i, side in enumerate(SIDES):
        lab.cable(End(inside, side, _mac(1, i)), generator_side[i])
    ports = [Port(side, device=DEVICE, keys={"mac": _mac(1, i)}) for i, side in enumerate(SIDES)]
    text = config_text(
        [*ports, Port("spare", device="net_ring0", keys={"mac": _mac(1, 2)})], flow={"ipv4": 1000, "ipv6": 1000}
    )
    return Forwarder(DL3D, text, inside, linux={})


def _connect(dl3d: Forwarder) -> None:
    """The ends of dl3gen as neighbours, and the way to the frames' destinations."""
    dl3d.wait_ready()
    lines = []
    for i, side in enumerate(SIDES):
        lines.append(f"address add 10.0.{i}.254/24 dev {side}")
        lines.append(f"neighbour add 10.0.{i}.2 lladdr {_mac(0, i)} dev {side} nud permanent")
    batch(dl3d.taps, [*lines, "route add 198.19.0.0/16 via 10.0.1.2"])
    wait_until(lambda: dl3d.call("route", address="198.19.0.1")["mac"] == _mac(0, 1), "workers had the route")


def _generator_text() -> str:
    devices = [DEVICE.format(index=i, name=side) for i, side in enumerate(SIDES)]
    ports = [{"name": side, "device": devices[i], "mac": _mac(0, i)} for i, side in enumerate(SIDES)]
    whole = {
        "ports": ports,
        "workers": [{"core": CORES[-1]}],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    text: str = yaml.safe_dump(whole)
    return text


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    with Lab() as lab:
        outside = lab.namespace("gen", silent=True)
        ends = [End(outside, side, _mac(0, i)) for i, side in enumerate(SIDES)]
        with _forwarder(lab, ends) as dl3d:
            _connect(dl3d)
            with Generator(DL3GEN, _generator_text(), Surroundings(namespace=outside)) as dl3gen:
                dl3gen.wait_ready()
                options = ("--socket", str(dl3d.socket), "--generator", str(dl3gen.socket))
                with prometheus(lab, options) as server:
                    yield Bed(dl3gen, dl3d, server)


def prometheus_has_the_counts_of_dl3gen(bed: Bed) -> None:
    received, sent = 'dl3d_port_rx_packets_total{port="left"}', 'dl3d_port_tx_packets_total{port="right"}'
    own = 'dl3d_port_injected_packets_total{port="right"}'  # what Linux sends by itself
    through = f"{sent} - {own}"
    ports = {port["name"]: port for port in bed.dl3d.call("ports")["ports"]}
    before = {
        received: ports["left"]["rx_packets"],
        through: ports["right"]["tx_packets"] - ports["right"]["injected_packets"],
    }
    results = bed.run()
    assert results.streams[0].sent == FRAMES
    bed.prometheus.wait_for(received, before[received] + results.streams[0].sent)
    bed.prometheus.wait_for(through, before[through] + results.streams[0].received)
    bed.prometheus.wait_for('dl3gen_stream_sent_packets_total{stream="east"}', results.streams[0].sent)
    bed.prometheus.wait_for('dl3gen_stream_latency_seconds_count{stream="east"}', results.streams[0].received)
    bed.prometheus.wait_for("dl3d_account_imbalance_packets", 0)
    account = "dl3d_received_packets_total + dl3d_injected_packets_total + dl3d_copied_packets_total"
    left = "dl3d_sent_packets_total + dl3d_punted_packets_total + ignoring(verdict) sum without (verdict) (dl3d_dropped_packets_total)"
    bed.prometheus.wait_for(f"{account} - ({left})", 0)


def every_query_of_the_dashboard_returns_data(bed: Bed) -> None:
    bed.run()
    panels = [below for panel in dashboard()["panels"] for below in (panel, *panel.get("panels", []))]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(queries) > len(panels) / 2
    for query in queries:
        plain = query.replace("$__rate_interval", "1m").replace("$instance", ".*")
        wait_until(lambda plain=plain: bool(bed.prometheus.query(plain)), f"{plain} returned data")  # type: ignore[misc]


def promtool_has_nothing_against_what_they_say(bed: Bed) -> None:
    options = ["--socket", str(bed.dl3d.socket), "--generator", str(bed.dl3gen.socket)]
    words = [sys.executable, "-m", "dl3", "metrics", "--once", *options]
    run = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=TOP)
    assert (run.returncode, run.stderr) == (0, "")
    promtool("check", "metrics", given=run.stdout)


def a_restart_is_seen_and_a_dead_dl3d_is_down(bed: Bed) -> None:
    """Takes more than 5 s: Prometheus looks every 2 s, and several times."""
    bed.run()
    start, received = "dl3d_start_time_seconds", 'dl3d_port_rx_packets_total{port="left"}'
    bed.prometheus.wait_for("dl3d_up", 1)
    before = bed.prometheus.value(start)
    told = len(bed.prometheus.exporter.log.read_text())  # it may have missed an answer on a busy machine
    bed.dl3d.kill()
    bed.prometheus.wait_for("dl3d_up", 0)
    wait_until(lambda: bed.prometheus.states().get("Dl3dDown", "inactive") != "inactive", "the alert had seen it")
    assert bed.prometheus.value(start) is None
    bed.prometheus.wait_for("dl3gen_up", 1)
    said = bed.prometheus.exporter.log.read_text()[told:]
    assert len(re.findall("dl3d_up is 0", said)) == 1
    assert "Traceback" not in said
    bed.dl3d.start_again()
    _connect(bed.dl3d)
    bed.prometheus.wait_for("dl3d_up", 1)
    bed.prometheus.wait_for(received, 0)
    after = bed.prometheus.value(start)
    assert before is not None
    assert after is not None
    assert after > before
    bed.run()
    bed.prometheus.wait_for(received, FRAMES)


def the_number_of_series_does_not_grow_with_the_tables(bed: Bed, is_long: bool) -> None:
    """Takes more than 5 s: as long as Linux and dl3d need for so many routes."""
    bed.run()
    bed.prometheus.wait_for('dl3gen_stream_received_packets_total{stream="east"}', FRAMES)
    routes, most = 'dl3d_routes{family="ipv4"}', f"max_over_time({SAMPLES}[10m])"
    n_routes, n_samples = len(bed.dl3d.call("routes", limit=1000)["routes"]), bed.prometheus.value(most)
    assert n_samples
    number = 1_000_000 if is_long else 100_000
    bed.route(ROUTES if is_long else 0, number)
    wait_until(lambda: (bed.prometheus.value(routes) or 0) >= n_routes + number, "all routes were seen", 600.0)
    bed.prometheus.wait_for(SAMPLES, n_samples)
    assert bed.prometheus.value(most) == n_samples
