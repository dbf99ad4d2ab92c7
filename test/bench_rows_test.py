"""Sides of rows that have bridges, vhost-user ports and subscribers, for real: what the row names does its work."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from harness.wire import wait_until
from harness.wired import BUILD

from dl3.bench import bridges, shapers, vxlan_routes, vxlans
from dl3.bench.bridges import KnownOnly, make_bridge_dl3d, make_bridge_ovs, make_bridge_testpmd
from dl3.bench.macs import MAC_SETS
from dl3.bench.onecore import Runner
from dl3.bench.shapers import make_police, make_sched, make_shaper
from dl3.bench.sides import Contestant, Entry, PairSettings
from dl3.bench.space import pages_of
from dl3.bench.twocores import VHOST, LinkRunner, links_started
from dl3.bench.vxlan_routes import make_decap_dl3d, make_decap_ovs
from dl3.bench.vxlans import BOTH_WAYS, OUT_ONLY, Begun, make_vxlan_dl3d, make_vxlan_ovs
from dl3.bench.workplace import Workplace, workplace
from dl3.control.bridge_replies import Bridges
from dl3.control.client import Client
from dl3.control.replies import Drops
from dl3.dut.dl3d import Dl3d
from dl3.dut.testpmd import Testpmd
from dl3.dut.vswitch import Vswitch
from dl3.host.cores import usable
from dl3.host.hugepages import reserved
from dl3.lab.single import Dut

pytestmark = pytest.mark.alone  # huge pages, and one core per program

TERMS = PairSettings(core=usable()[-1], memory_mib=512)
NUMBER = MAC_SETS["4k"].number
MANY = 4 * NUMBER


@pytest.fixture
def place() -> Iterator[Workplace]:
    with workplace() as made, reserved(pages_of(TERMS)):
        yield made


@contextmanager
def _begun(side: Contestant, place: Workplace) -> Iterator[Runner]:
    """The program of a side, once it knows all addresses and has forwarded many frames since."""
    with side.started(place) as running:
        assert isinstance(running, KnownOnly)
        runner = running.runner
        before = runner.wait_for(0, 60.0)
        runner.wait_for(before.sent + MANY, 60.0)
        yield runner


def dl3d_learns_all_addresses_and_floods_no_frame(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridges, "march_of_build", lambda _: "any")
    side = make_bridge_dl3d(".", Entry("dl3d with a bridge", macs="4k"), TERMS, place)
    with _begun(side, place) as runner:
        client = Client(next(place.folder.glob("*.sock")))
        (bridge,) = client.ask(Bridges, "bridges").bridges
        assert [port.learnt_macs for port in bridge.ports] == [NUMBER // 2, NUMBER // 2, 0]
        assert (bridge.moved, bridge.refused, bridge.evicted) == (0, 0, 0)
        before, sent = client.ask(Drops, "drops"), runner.wait_for(0, 60.0).sent
        runner.wait_for(sent + MANY, 60.0)
        after = client.ask(Drops, "drops")
        assert after.sent > before.sent
        assert (after.copied, after.dropped) == (before.copied, before.dropped)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["normal", "static"])
def open_vswitch_forwards_by_port_of_the_address(mode: str, place: Workplace) -> None:
    side = make_bridge_ovs(Entry("Open vSwitch", mode=mode, macs="4k"), TERMS, place)
    with _begun(side, place) as runner:
        ready = runner.job.begin
        assert isinstance(ready, bridges.Configured)
        assert ready.n_known() == NUMBER
        wait_until(lambda: _has_all_flows(ready.own), "its datapath had a flow for each address, to one port")


def _has_all_flows(own: Vswitch) -> bool:
    """Flows from a time when an address was not known yet are replaced within a second."""
    lines = own.appctl("dpctl/dump-flows").splitlines()
    outputs = Counter(line.rpartition("actions:")[2] for line in lines if "eth_type(0x0800)" in line)
    del outputs["drop"]
    return len(outputs) == 2 and set(outputs.values()) == {NUMBER // 2}


@pytest.mark.long
@pytest.mark.parametrize("mode", [OUT_ONLY, BOTH_WAYS])
def dl3d_sends_frames_to_the_remote_end_that_it_has_learnt(
    mode: str, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vxlans, "march_of_build", lambda _: "any")
    side = make_vxlan_dl3d(".", Entry("dl3d with VXLAN", mode=mode, macs="4k"), TERMS, place)
    with _begun(side, place) as runner:
        client = Client(next(place.folder.glob("*.sock")))
        (bridge,) = client.ask(Bridges, "bridges").bridges
        assert bridge.learnt_macs == NUMBER
        assert [port.learnt_macs for port in bridge.ports if port.port in ("left", "third")] == [NUMBER // 2, 0]
        before, sent = client.ask(Drops, "drops"), runner.wait_for(0, 60.0).sent
        runner.wait_for(sent + MANY, 60.0)
        after = client.ask(Drops, "drops")
        assert after.sent > before.sent
        assert (after.copied, after.dropped) == (before.copied, before.dropped)


@pytest.mark.long
@pytest.mark.parametrize("mode", [OUT_ONLY, BOTH_WAYS])
def open_vswitch_sends_frames_to_the_remote_end_that_it_has_learnt(mode: str, place: Workplace) -> None:
    side = make_vxlan_ovs(Entry("Open vSwitch with VXLAN", mode=mode, macs="4k"), TERMS, place)
    with _begun(side, place) as runner:
        begun = runner.job.begin
        assert isinstance(begun, Begun)
        assert isinstance(begun.is_known, bridges.Configured)
        own, pushes = begun.is_known.own, "tnl_push(" if mode == OUT_ONLY else "tnl_pop("
        assert begun.is_known.n_known() == NUMBER
        wait_until(lambda: pushes in own.appctl("dpctl/dump-flows"), "its datapath had flows of the tunnel")


@pytest.mark.long
def dl3d_routes_what_comes_in_vxlan(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vxlan_routes, "march_of_build", lambda _: "any")
    side = make_decap_dl3d(".", Entry("dl3d with VXLAN that is routed", n_hops=1), TERMS, place)
    with _begun(side, place) as runner:
        client = Client(next(place.folder.glob("*.sock")))
        before, sent = client.ask(Drops, "drops"), runner.wait_for(0, 60.0).sent
        runner.wait_for(sent + MANY, 60.0)
        after = client.ask(Drops, "drops")
        assert after.sent - before.sent >= MANY
        assert (after.punted, after.dropped) == (before.punted, before.dropped)


@pytest.mark.long
def open_vswitch_routes_what_comes_in_vxlan(place: Workplace) -> None:
    side = make_decap_ovs(Entry("Open vSwitch with VXLAN that is routed"), TERMS, place)
    with _begun(side, place) as runner:
        begun = runner.job.begin
        assert isinstance(begun, bridges.Configured)
        wait_until(lambda: "set(ipv4(ttl=63" in begun.own.appctl("dpctl/dump-flows"), "its datapath had the route")


@pytest.mark.long
def testpmd_hands_on_frames_both_ways(place: Workplace) -> None:
    side = make_bridge_testpmd(Entry("testpmd io both ways", macs="4k"), TERMS, place)
    with _begun(side, place) as runner:
        assert runner.read()


POLICING, SHAPING = Entry("policing"), Entry("shaping")
SIDES: dict[str, Callable[[Workplace], Contestant]] = {
    "dl3d polices": lambda place: make_police(replace(POLICING, mode="dl3d"), TERMS, place),
    "rte_meter polices": lambda place: make_police(replace(POLICING, mode="rte_meter"), TERMS, place),
    "dl3d shapes": lambda place: make_shaper(".", SHAPING, TERMS, place),
    "rte_sched shapes": lambda place: make_sched(".", SHAPING, TERMS, place),
}


@pytest.mark.long
@pytest.mark.parametrize("side", SIDES)
def packets_of_subscribers_are_counted_until_the_end(
    side: str, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapers, "march_of_build", lambda _: "any")
    with SIDES[side](place).started(place) as runner:
        assert isinstance(runner, Runner)
        before = runner.wait_for(0, 60.0)
        assert runner.wait_for(before.sent + MANY, 60.0).tsc_hz > 0
        process = runner.process
    assert process.returncode == 0


DUTS = (Dl3d(BUILD / "src" / "dl3d", mode="xconnect"), Testpmd("io"))


@pytest.mark.long
@pytest.mark.parametrize("dut", DUTS, ids=lambda dut: dut.name)
def frames_come_back_from_the_ports_of_guests(dut: Dut) -> None:
    with links_started(VHOST, dut, TERMS) as running:
        run = running.run(0.2)
        (stream,) = run.results.streams
        assert 0 < stream.received <= run.taken <= run.offered
        assert stream.corrupted == stream.duplicated == 0
        _check_devices(running, dut.name)


def _check_devices(running: LinkRunner, name: str) -> None:
    """Both had vhost-user ports."""
    links = running.lab.endpoint.links
    assert (links.name, running.lab.device.name) == ("vhost", name)
    assert all(Path(links.folder / port).is_socket() for port in ("left", "right"))
