"""All labs as values: the way of a frame, its places, their losses, and what the nodes are told."""

import random
from pathlib import Path
from typing import get_args

import pytest

from dl3.lab.kind import Load, Settings, devices_of, start_options
from dl3.lab.stations import Middle, PortCounts, Sender, SwitchCounts, hops, is_explained
from dl3.lab.switches import dl3d_config
from dl3.labs.contrail import published_loads
from dl3.labs.kernel_notes import topology_of as notes
from dl3.labs.ovs_switch import flows, ovs_counts
from dl3.labs.registry import LABS
from dl3.labs.vrouters import config
from dl3.labs.vswitch import topology_of as vswitch
from dl3.model.lab import VM1, VM2, Accelerator, Hop, LabRun, Topology
from dl3.report.lab_drawing import drawing
from dl3.report.lab_section import place_text
from dl3.report.page import page
from dl3.report.texts import words_in
from dl3.report.words import Language

FOLDER = Path("/run/x")
EVERY = [
    topology
    for kind in LABS.values()
    for accelerator in (get_args(Accelerator) if kind.n_guests else ("none",))
    for topology in kind.topologies(Settings(), accelerator)
]
NAMES = [f"{one.lab}-{one.switch}-{one.accelerator}-{len(one.legs)}-{len(one.nodes)}" for one in EVERY]
everywhere = pytest.mark.parametrize("topology", EVERY, ids=NAMES)


def _lossy(topology: Topology, seed: int) -> tuple[tuple[Hop, ...], list[int]]:
    """Counters of a lab in which some frames are lost at each place, and how many."""
    draw = random.Random(seed)
    places, losses = topology.places(), []
    left, sent = 100_000, 100_000
    came: dict[str, int] = {}
    went: dict[str, int] = {}
    lost: dict[str, int] = {}
    for place in places:
        losses.append(draw.choice((0, draw.randrange(1000))))
        came[place.key], left = left, left - losses[-1]
        went[place.key], lost[place.key] = left, losses[-1]
    ports: dict[str, PortCounts] = {}
    nodes: dict[str, dict[str, int]] = {}
    for place in places:
        known = ports.get(place.of, PortCounts())
        if place.kind == "in":
            lost_in = {"rx": lost[place.key]}
            ports[place.of] = PortCounts(went[place.key], known.sent, lost_in, known.lost_out)
        elif place.kind == "out":
            lost_out = {"tx": lost[place.key]}
            ports[place.of] = PortCounts(known.received, went[place.key], known.lost_in, lost_out)
        elif place.kind == "node":
            nodes[place.key] = {"dropped": lost[place.key]}
    first, last = topology.sender.name, topology.receiver
    others = {
        one.name: Middle(went[f"{one.name} rx"], lost[f"{one.name} rx"], lost.get(one.name, 0), went.get(one.name, 0))
        for one in topology.stations[1:]
        if not one.part_of
    }
    end = f"{last.name} rx"
    sender = Sender(sent, lost[f"{first} tx"], went[end], lost[end])
    return hops(topology, sender, SwitchCounts(ports, nodes), others), losses


def _run(topology: Topology, seed: int = 1) -> LabRun:
    found, _ = _lossy(topology, seed)
    return LabRun(
        at="2026-11-28T10:00:00+00:00",
        campaign="2026-11-28T09:59:00+00:00",
        topology=topology,
        frame="64",
        asked_pps=10_000,
        seconds=10,
        hops=found,
        facts={},
    )


@everywhere
def finds_each_loss_at_its_place_and_they_add_up(topology: Topology) -> None:
    keys = [place.key for place in topology.places()]
    assert len({*keys}) == len(keys)
    for seed in range(10):
        found, losses = _lossy(topology, seed)
        assert [hop.place for hop in found] == keys
        assert [hop.lost for hop in found] == losses
        assert is_explained(found)
        run = _run(topology, seed)
        assert run.is_chain
        assert sum(losses) == run.sent - run.received


@everywhere
def has_a_card_at_each_port_or_a_cable_to_the_next(topology: Topology) -> None:
    cards = {card.port for station in topology.stations for card in station.cards}
    cables = {leg.leaves for leg in topology.legs if not leg.to}
    cables |= {after.enters for leg, after in zip(topology.legs, topology.legs[1:], strict=False) if not leg.to}
    assert cards | cables == {port for ports in topology.nodes.values() for port in ports}
    assert not cards & cables
    assert topology.legs[0].enters == topology.sender.cards[0].port
    assert topology.legs[-1].to == topology.receiver.name


@everywhere
@pytest.mark.parametrize("language", Language)
def draws_what_was_built(topology: Topology, language: Language) -> None:
    words, run = words_in(language), _run(topology)
    picture = drawing(run, words)
    texts = [text.strip() for text in picture.itertext()]
    assert [one.name for one in topology.stations if one.name not in texts] == []
    assert [name for node, ports in topology.nodes.items() for name in (node, *ports) if name not in texts] == []
    lost = {one.get("data-place"): float(one.get("data-value") or 0) for one in picture.iter() if one.get("data-place")}
    assert lost == {hop.place: hop.lost for hop in run.hops if hop.lost}
    _, _, width, height = (float(n) for n in picture.get("viewBox", "").split())
    for one in picture.iter():
        x, y = float(one.get("x", 0)), float(one.get("y", 0))
        assert 0 <= x <= x + float(one.get("width", 0)) <= width, one.attrib
        assert 0 <= y <= y + float(one.get("height", 0)) <= height, one.attrib


@everywhere
def has_words_for_each_place(topology: Topology) -> None:
    for language in Language:
        found = [place_text(place.key, topology, words_in(language)) for place in topology.places()]
        assert len({*found}) >= len(found) - len(topology.legs)  # a port that is passed twice has one name
        assert all("{" not in text for text in found)


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("name", LABS)
def shows_published_figures_beside_ours(name: str, language: Language) -> None:
    runs = [_run(one) for one in EVERY if one.lab == name and one.accelerator == "none"]
    text = page(runs, language, "2026-11-28T10:00:00+00:00")
    assert (f'id="published-{name}"' in text) == (name in ("contrail", "kernel-notes"))  # of 64 bytes


def sends_at_the_loads_of_the_contrail_report() -> None:
    loads = published_loads()
    assert [load.pps for load in loads if load.frame_bytes == 64] == [780_160, 893_336, 907_600]
    assert len([load for load in loads if load.frame_bytes == 1468]) == 5
    kind = LABS["contrail"]
    (topology,) = kind.topologies(Settings(), "none")
    assert kind.loads_for(Settings(), topology) == loads
    assert kind.loads_for(Settings(rates_pps=(5,), frame_bytes=70), topology) == (Load(frame_bytes=70, pps=5),)
    (emulated,) = kind.topologies(Settings(), "tcg")
    assert max(load.pps for load in kind.loads_for(Settings(), emulated)) < 100_000


def puts_one_generator_in_place_of_both_vms() -> None:
    (topology,) = LABS["contrail"].topologies(Settings(), "none")
    found = devices_of(topology, topology.station(VM1), FOLDER)
    assert ["left.sock" in found[0], "right.sock" in found[1]] == [True, True]
    (guests,) = LABS["contrail"].topologies(Settings(), "tcg")
    assert start_options(guests, guests.station(VM2), Path("/testpmd"))["mode"] == "rxonly"
    assert "mode" not in start_options(guests, guests.station(VM1), Path("/dl3gen"))


def gives_the_vrouters_sockets_of_the_vms() -> None:
    (topology,) = LABS["contrail"].topologies(Settings(), "tcg")
    ports = [config(topology, host, FOLDER)["ports"] for host in range(2)]
    assert all(isinstance(some, list) for some in ports)
    text = str(ports)
    assert "'vhost': {'socket': '/run/x/left.sock'}" in text
    assert "'vhost': {'socket': '/run/x/right.sock'}" in text
    assert "net_vhost" not in text


def polls_each_port_once() -> None:
    for topology in EVERY:
        if topology.switch in ("dl3d", "dl3d-router", "dl3d-hosts"):
            found = dl3d_config(topology, FOLDER, range(len(topology.legs)))
            queues = sorted(queue for worker in found["workers"] for queue in worker["queues"])
            assert queues == sorted(f"{port['name']}/0" for port in found["ports"])


def forwards_each_leg_by_a_flow_of_ovs() -> None:
    one, two = (vswitch("ovs", path, Settings(), "tcg") for path in ("one-link", "two-links"))
    assert flows(one) == [("br0", "in_port=1,actions=output:2"), ("br0", "in_port=2,actions=output:1")]
    assert flows(two) == [("br0", "in_port=1,actions=output:2"), ("br1", "in_port=1,actions=output:2")]


def reads_the_counters_of_ovs() -> None:
    text = """OFPST_PORT reply (xid=0x2): 3 ports
  port LOCAL: rx pkts=9, bytes=0, drop=9, errs=0, frame=0, over=0, crc=0
           tx pkts=9, bytes=0, drop=9, errs=0, coll=0
  port  1: rx pkts=5, bytes=70, drop=2, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
  port  2: rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=7, bytes=?, drop=3, errs=?, coll=?
"""
    assert ovs_counts(text, ("left", "right")) == {
        "left": PortCounts(5, 0, {"rx_dropped": 2}, {"tx_dropped": 0}),
        "right": PortCounts(0, 7, {"rx_dropped": 0}, {"tx_dropped": 3}),
    }


def routes_to_many_addresses_in_the_kernel_notes() -> None:
    for path, mac in (("L2", "02:00:00:00:00:12"), ("L3", "02:00:00:00:00:01")):
        stream = notes(path, "linux", "none").stream
        assert (stream["dst_mac"], stream["flows"]) == (mac, 20_000)
