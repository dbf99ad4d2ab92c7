"""From counters to hops: the losses add up, and each is named where it happened."""

import random

from dl3.control.replies import Ports, Workers
from dl3.lab.kind import Settings
from dl3.lab.kvm_report import topology_of
from dl3.lab.stations import Middle, PortCounts, Sender, SwitchCounts, hops, is_explained
from dl3.lab.switches import dl3d_counts, linux_counts
from dl3.model.lab import VM2, Hop, LabRun

TOPOLOGY = topology_of(Settings(), "tcg")
PLACES = tuple(place.key for place in TOPOLOGY.places())
THERE, INSIDE, BACK = PLACES[:5], PLACES[5:6], PLACES[6:]


def _run(found: tuple[Hop, ...]) -> LabRun:
    return LabRun(at="t", campaign="c", topology=TOPOLOGY, frame="64", asked_pps=1, seconds=1, hops=found, facts={})


def _chain(losses: list[int], sent: int) -> tuple[Hop, ...]:
    """Counters of a lab in which this many frames are lost at each place, in the order of PLACES."""
    tx, in0, br0, out1, rx2, inside, in2, br1, out3, rx1 = losses
    left = sent - tx
    received0 = left - in0
    sent1 = received0 - br0 - out1
    came = sent1 - rx2
    went = came - inside
    received2 = went - in2
    sent3 = received2 - br1 - out3
    ports = {
        "vnet0": PortCounts(received=received0, lost_in={"rx_dropped": in0}),
        "vnet1": PortCounts(sent=sent1, lost_out={"tx_dropped": out1}),
        "vnet2": PortCounts(received=received2, lost_in={"rx_dropped": in2}),
        "vnet3": PortCounts(sent=sent3, lost_out={"tx_dropped": out3}),
    }
    switch = SwitchCounts(ports, {"br0": {"bridge_mtu": br0}, "br1": {"bridge_mtu": br1}})
    return hops(TOPOLOGY, Sender(sent, tx, sent3 - rx1, rx1), switch, {VM2: Middle(came, rx2, inside, went)})


def finds_each_loss_at_its_place_and_they_add_up() -> None:
    for seed in range(100):
        draw = random.Random(seed)
        losses = [draw.choice((0, draw.randrange(1000))) for _ in PLACES]
        run = _run(_chain(losses, 100_000))
        assert [hop.place for hop in run.hops] == list(PLACES)
        assert [hop.lost for hop in run.hops] == losses
        assert run.is_chain
        assert is_explained(run.hops)
        assert sum(losses) == run.sent - run.received
        assert run.lost_at(THERE) + run.lost_at(INSIDE) + run.lost_at(BACK) == sum(losses)


def says_what_no_counter_names() -> None:
    ports = {name: PortCounts(received=10, sent=10) for name in ("vnet0", "vnet1", "vnet2", "vnet3")}
    found = hops(TOPOLOGY, Sender(10, 0, 10, 0), SwitchCounts(ports), {VM2: Middle(10, 0, 0, 7)})
    assert not is_explained(found)
    assert {hop.place: hop.unnamed for hop in found if hop.unnamed} == {"VM2": 3, "vnet2": -3}


def counts_from_a_reading_before() -> None:
    before = SwitchCounts({"vnet1": PortCounts(1, 2, {}, {"tx_dropped": 5})}, {"br0": {"x": 1}})
    after = SwitchCounts({"vnet1": PortCounts(4, 9, {}, {"tx_dropped": 5})}, {"br0": {"x": 3}})
    assert after.since(before) == SwitchCounts({"vnet1": PortCounts(3, 7, {}, {})}, {"br0": {"x": 2}})


def reads_the_counters_of_linux() -> None:
    rx, tx = {"packets": 5, "errors": 1, "dropped": 2}, {"packets": 7, "errors": 0, "dropped": 4}
    found = linux_counts([{"ifname": "vnet1", "stats64": {"rx": rx, "tx": tx}}])
    assert found.ports["vnet1"] == PortCounts(5, 7, {"rx_dropped": 3}, {"tx_dropped": 4})


def _port(name: str, received: int, sent: int) -> dict[str, object]:
    unknown = dict.fromkeys(("rx_no_mbuf", "rx_errors", "tx_errors"))
    counts = {"rx_packets": received, "tx_packets": sent, "rx_bytes": 0, "tx_bytes": 0, "rx_missed": 1, **unknown}
    return {"port": 0, "name": name, "device": "d", "mac": "", "mtu": 1500, "link_up": True, "rx_queues": 1, **counts}


def _worker(number: int, **verdicts: int) -> dict[str, object]:
    whole = {"worker": number, "core": number, "numa": 0, "queues": [], "counters": {}, "empty_share": 0.0}
    return {**whole, "poll_gap": None, "cycles_per_packet": None, "verdicts": verdicts}


def names_what_dl3d_drops_at_each_bridge() -> None:
    ports = Ports.model_validate(
        {"ports": [_port("vnet0", 9, 0), _port("vnet1", 0, 5), _port("vnet2", 5, 0), _port("vnet3", 0, 4)]}
    )
    workers = Workers.model_validate(
        {"workers": [_worker(0, forward=5, tx_refused=3, bridge_mtu=1), _worker(1, forward=4, tx_refused=1)]}
    )
    found = dl3d_counts(TOPOLOGY.legs, (ports, workers), {}, ["br0", "br1"])
    assert found.nodes == {"br0": {"bridge_mtu": 1}, "br1": {}}
    assert found.ports["vnet1"].lost_out == {"tx_refused": 3}
    assert found.ports["vnet0"] == PortCounts(9, 0, {"rx_missed": 1}, {})
    assert found.ports["vnet3"].lost_out == {"tx_refused": 1}
