"""Each kind of device under test for real: start, forwarding check, facts in the record, stop."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from harness.duts import OTHER, OVS, TESTER, opened, passes, setup_of, spec_of
from harness.wire import wait_until
from harness.wired import BUILD

from dl3.bench.compare import Contest, both_open, turn
from dl3.campaign.written import typed
from dl3.cli.campaign_file import read_campaign
from dl3.control.bridge_replies import Bridges
from dl3.control.client import Client
from dl3.control.generator import Results
from dl3.control.replies import Drops, Ports, Reply, Workers
from dl3.dut import beds, testpmd
from dl3.dut.bed import Bed
from dl3.dut.beds import open_bed
from dl3.dut.wired import WiredBed
from dl3.host.hugepages import NUMBER, read_number
from dl3.model.campaign import DutSpec, Setup, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.results import Versus
from dl3.model.stream import Stream
from dl3.record.reader import read
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

pytestmark = pytest.mark.alone  # huge pages, one core per program, and no other test may create namespaces

TOP = Path(__file__).resolve().parent.parent
L3FWD = pytest.param("l3fwd", marks=pytest.mark.long)  # has to be built
LAB_KINDS = (
    "dl3d",
    "dl3d:mode=xconnect",
    "dl3d:mode=bridge,wire=vhost",
    "vrouters",
    pytest.param("dl3d:wire=veth", marks=pytest.mark.long),  # resets take it, too
    L3FWD,
    "testpmd",
    pytest.param("testpmd:mode=mac", marks=pytest.mark.long),
    pytest.param("testpmd:mode=macswap,wire=veth", marks=pytest.mark.long),
    pytest.param("testpmd:wire=vhost", marks=pytest.mark.long),
    OVS,
    pytest.param("ovs:mode=bridge", marks=pytest.mark.long),
    "linux",
    pytest.param("linux:mode=bridge", marks=pytest.mark.long),
)


@pytest.fixture(autouse=True)
def peer(request: pytest.FixtureRequest) -> None:
    """Builds l3fwd for tests that name it."""
    if "l3fwd" in request.node.name:
        subprocess.run([TOP / "tools" / "build-peers", "l3fwd"], check=True)


def _own_namespaces() -> set[str]:
    """Those that this process has made (dl3/lab/namespace.py); others come and go with other tests."""
    names = subprocess.check_output(["ip", "netns"], text=True).split()
    return {name for name in names if name.startswith(f"dl3-{os.getpid()}-")}


def _wait_for_rest(dut: Client) -> Drops:
    """The account once nothing is on its way."""
    wait_until(lambda: not dut.ask(Drops, "drops").in_flight, "nothing was in flight")
    return dut.ask(Drops, "drops")


@pytest.mark.parametrize("text", LAB_KINDS)
def forwards_both_ways_and_reports_what_it_is(text: str) -> None:
    pages, namespaces = read_number(NUMBER), _own_namespaces()
    with opened(text, Traffic(flows=10)) as bed:
        assert len(bed.streams) == 2
        assert passes(bed)
        reported = bed.facts["dut"]
        assert isinstance(reported, dict)
        assert (reported["name"], reported["kind"]) == (text, text.partition(":")[0])
        assert any(letter.isdigit() for letter in reported["version"])
        assert reported["configuration"]
        assert bed.dut is None or reported["kind"] in ("dl3d", "vrouters")
    assert read_number(NUMBER) <= pages
    assert _own_namespaces() == namespaces


def two_vrouters_forward_two_pairs_and_are_accounted_as_one() -> None:
    case = next(one for one in read_campaign("contrail").written.cases if one.key == "6.1-pairs")
    with opened("vrouters", Traffic.model_validate({"streams": typed(list(case.streams or ()))})) as bed:
        assert [stream.written()["src_ip"] for stream in bed.streams] == ["198.18.0.1", "198.18.128.1"]
        assert passes(bed)
        assert bed.dut is not None
        account = _wait_for_rest(bed.dut)
        assert account.received == account.sent > 0
        assert (account.dropped, account.punted, account.injected) == (0, 0, 0)
        assert sum(each.received for each in bed.generator.ask(Results, "results").streams) <= account.sent
        assert {port.name for port in bed.dut.ask(Ports, "ports").ports} == {"left", "right"}
        assert [each.worker for each in bed.dut.ask(Workers, "workers").workers] == [0, 1]


@pytest.mark.parametrize("text", ["dl3d", L3FWD, OVS, "linux"])
def forwards_ipv6_too(text: str) -> None:
    with opened(text, Traffic(family="ipv6")) as bed:
        assert ":" in str(bed.streams[0].written()["src_ip"])
        assert passes(bed)


WHITE_PAPER = Traffic(flows=20_000, addresses="white-paper")


def is_a_bridge_that_knows_both_ends() -> None:
    """Frames of both directions leave by the port of their address; none is flooded, and none is dropped. The rings are as
    long as in campaigns.
    """
    with opened("dl3d:mode=bridge,wire=vhost", Traffic(flows=10), descriptors=16384) as bed:
        assert bed.dut
        runner = Runner(Site(bed.generator, bed.dut))
        trial = runner.run(Order(bed.streams, "64", 5_000.0, 0.3, warm_up_s=0.0))  # no more than a ring holds
        assert (trial.account.lost, trial.account.received) == (0, trial.account.sent)
        (bridge,) = bed.dut.ask(Bridges, "bridges").bridges
        assert (bridge.static_macs, bridge.learnt_macs, bridge.moved, bridge.refused) == (2, 2, 0, 0)
        assert [port.learnt_macs for port in bridge.ports] == [1, 1]
    assert bed.wire == "vhost"


@pytest.mark.long
@pytest.mark.parametrize("text", ["dl3d:wire=vhost", "ovs"])
def cannot_be_killed_at_the_ports_of_guests(text: str) -> None:
    with opened(text) as bed, pytest.raises(Fault, match="at vhost links cannot be reset, because"):
        bed.reset_process()


def tells_which_frames_had_a_flow() -> None:
    with opened("dl3d:lookup=flow", WHITE_PAPER) as bed:
        runner = Runner(Site(bed.generator, bed.dut))
        trial = runner.run(Order(bed.streams, "66", 100_000.0, 0.3, warm_up_s=0.0))
        astray = tuple(Stream.model_validate(one.written() | {"src_port": 12}) for one in bed.streams)
        lost = runner.run(Order(astray, "66", 100_000.0, 0.3, warm_up_s=0.0))
    assert trial.evidence
    assert lost.evidence
    (found,), (missed,) = trial.evidence.work, lost.evidence.work
    assert found.flow_packets == found.packets >= trial.account.received > 0
    assert "flow_missing" not in trial.account.lost_by_place
    assert (missed.flow_packets, lost.account.received) == (0, 0)
    assert missed.packets == lost.account.lost_by_place["flow_missing"] > 0


@pytest.mark.long
def routes_the_white_papers_frames_too() -> None:
    with opened("dl3d", WHITE_PAPER) as bed:
        assert passes(bed)


def routes_a_table_of_ours_beside_the_links() -> None:
    with opened("dl3d", routes="10k") as bed:
        assert bed.dut
        reported = bed.dut.ask(Reply, "route", address="48.5.6.7").model_dump()
        assert "10.0.2.2" in str(reported) or "10.0.1.2" in str(reported)
        assert passes(bed)


@pytest.mark.parametrize(
    ("text", "more"),
    [("dl3d", {"page_kib": 4}), pytest.param("testpmd", {"page_kib": 4, "channels": 2}, marks=pytest.mark.long)],
)
def runs_without_huge_pages(text: str, more: dict[str, Any]) -> None:
    with opened(text, **more) as bed:
        assert passes(bed)
        assert "never" in str(bed.facts["dut"]) or "--no-huge" in str(bed.facts["dut"])


def forwards_with_two_cores() -> None:
    with opened("dl3d", cores=2, dut_cores=(OTHER, TESTER)) as bed:
        assert passes(bed)


@pytest.mark.long
def takes_a_box_and_a_generator_that_run_already() -> None:
    with opened("dl3d") as bed:
        assert bed.dut
        options: dict[str, object] = {"generator": str(bed.generator.path), "dut": str(bed.dut.path)}
        setup = Setup(dut=DutSpec(name="box", kind="external", options=options))
        traffic = Traffic(streams=tuple(stream.written() for stream in bed.streams))
        with open_bed(setup, traffic, BUILD) as box:
            assert passes(box)
            assert "dl3d" in str(box.facts["dut"])
            with pytest.raises(Fault, match="manually"):
                box.reset_process()
        astray = Traffic(streams=tuple(stream.written() | {"dst_ip": "192.0.2.1"} for stream in bed.streams))
        with (
            pytest.raises(Fault, match="box forwards nothing from left to right and from right to left: look at"),
            open_bed(setup, astray, BUILD),
        ):
            pass


def _open(setup: Setup) -> None:
    with open_bed(setup, Traffic(), BUILD):
        pass


def reports_that_a_device_does_not_start() -> None:
    with pytest.raises(Fault, match=r"testpmd exited with status 1: .*burst must be"):
        _open(setup_of("testpmd", burst=600))


@pytest.mark.long
def reports_that_a_device_does_not_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = replace(testpmd.KIND, make=lambda *_: testpmd.Testpmd("rxonly"))
    monkeypatch.setitem(beds.KINDS, "testpmd", kind)
    with pytest.raises(Fault, match="testpmd has started but forwards nothing from left to right and from right"):
        _open(setup_of("testpmd"))


@pytest.mark.parametrize(("text", "package"), [("testpmd", "dpdk-dev"), ("ovs", "openvswitch-switch-dpdk")])
def reports_how_to_install_what_is_not(text: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not beds.missing(spec_of(text))
    monkeypatch.setenv("PATH", "/nowhere")
    assert package in beds.missing(spec_of(text))
    with pytest.raises(Fault, match="is not installed: run 'tools/install-deps bench'"):
        _open(setup_of(text))


def reports_how_to_get_grout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "https://github.com/DPDK/grout" in beds.missing(spec_of("grout"))


BAD = [
    ("switch", {}, "unknown device kind 'switch'; supported: dl3d, "),
    ("dl3d:mod=route", {}, "has no option 'mod'; it has mode, lookup, idle, wire"),
    ("testpmd:mode=bridge", {}, "option mode is 'bridge'; expected one of io, mac, macswap"),
    ("linux", {"memory_mib": 1024}, "'linux' cannot be given memory_mib = 1024; leave it at 256"),
    ("ovs", {"burst": 16}, "'ovs' cannot be given burst = 16"),
    ("dl3d", {"descriptors": 1000}, "a ring has a power of two"),
    ("dl3d:wire=vhost", {"descriptors": 1000}, "a ring has a power of two"),
    ("ovs:mode=switch", {}, "option mode is 'switch'; expected one of route, bridge"),
    ("dl3d:mode=bridge,lookup=flow", {}, "'lookup: flow' is not possible with 'mode: bridge'"),
    ("dl3d:mode=bridge", {"routes": "10k"}, "routes '10k' have no effect with 'mode: bridge': leave one of them out"),
    ("dl3d", {"page_kib": 64}, "there are pages of 4, 2048 and 1048576 KiB"),
    ("dl3d", {"cores": 999, "dut_cores": ()}, "999 cores are needed besides dl3gen's"),
    ("dl3d", {"dut_cores": (999,)}, "core 999 does not exist"),
    ("dl3d", {"routes": "many"}, "unknown route table 'many'"),
]


PEER = ("l3fwd", {"burst": 16}, "l3fwd is built for bursts of 64, not 16: run 'tools/build-peers --burst 16 l3fwd'")
ROWS = [
    *(pytest.param(*row, id=str(row[2])[:30]) for row in BAD),
    pytest.param(*PEER, marks=pytest.mark.long, id="l3fwd"),
]


@pytest.mark.parametrize(("text", "more", "error"), ROWS)
def complains_in_one_sentence_about(text: str, more: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageFault) as found:
        _open(setup_of(text, **more))
    assert error in str(found.value)
    assert "\n" not in str(found.value)


def lets_two_beds_have_the_cores_in_turn(tmp_path: Path) -> None:
    setups = setup_of("dl3d"), setup_of("testpmd")
    contest = Contest(("64",), tmp_path / "record.jsonl", pairs=2)
    with both_open(setups, contest) as sides:
        for number in (0, 1, 1, 0):
            with turn(sides[number]):
                assert passes(sides[number].bed)
        for side in sides:
            wait_until(partial(_stands_still, side.bed), f"{side.name} stood still")


def _pids(bed: Bed) -> list[int]:
    assert isinstance(bed, WiredBed)
    return [process.process.pid for process in (bed.lab.generator_process, *bed.lab.device.processes)]


def _stands_still(bed: Bed) -> bool:
    stats = (Path(f"/proc/{pid}/stat").read_text(encoding="ascii") for pid in _pids(bed))
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


@pytest.mark.long
def compares_two_devices_by_command(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    words = "dl3d:wire=veth testpmd:wire=veth --sizes 512 --pairs 2 --seconds 0.2 --test throughput --json --record"
    command = [sys.executable, "-m", "dl3", "bench", "compare", *words.split(), str(record)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["dut"], result["peer"]) == ("dl3d:wire=veth", "testpmd:wire=veth")
    assert result["ratio"] == pytest.approx(median(result["ours_pps"]) / median(result["peer_pps"]))
    assert result["interval"][0] <= result["interval"][1]
    (kept,) = read(record).others
    assert isinstance(kept, Versus)
    assert {trial.dut for trial in read(record).trials} == {result["dut"], result["peer"]}
