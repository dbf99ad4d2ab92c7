"""Rules of the comparison of bridges, and how Open vSwitch is set up for it."""

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from dl3.bench import bridges, macs
from dl3.bench.bridges import (
    Configured,
    KnownOnly,
    bridge_words,
    check_even,
    flow_lines,
    make_bridge_dl3d,
    make_bridge_testpmd,
    ovs_settings,
    port_words,
)
from dl3.bench.macs import MacSet, addresses
from dl3.bench.norow import NoRow
from dl3.bench.onecore import Job, environment
from dl3.bench.sides import Entry, PairSettings
from dl3.bench.workplace import Workplace
from dl3.dut.vswitch import Vswitch
from dl3.model.fault import Fault
from dl3.model.sample import Sample

FEW = {"few": MacSet(24, 6)}
OVS = Entry("Open vSwitch", mode="normal", macs="few")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A program and a table in a folder of the test, and a set of few addresses."""
    program = tmp_path / "src" / "dl3d"
    program.parent.mkdir()
    program.touch()
    for module in (bridges, macs):
        monkeypatch.setattr(module, "MAC_SETS", FEW)
    monkeypatch.setattr(bridges, "BUILD", tmp_path)
    monkeypatch.setattr(macs, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(bridges, "march_of_build", lambda _: "corei7")
    monkeypatch.setattr(bridges, "march_of_distribution", lambda: "corei7")
    addresses.cache_clear()
    return Workplace(tmp_path, tmp_path / "onecore.so")


def _sample(received: float, sent: float) -> Sample:
    return Sample(1.0, 1.0, received, sent, 1.0)


@pytest.mark.parametrize(("sent", "why"), [(2.0, "flooded frames to addresses that it did not know"), (0.9, "dropped")])
def has_no_row_for_a_bridge_that_floods_or_drops(sent: float, why: str) -> None:
    check_even("dl3d", _sample(1.0, 1.004))
    with pytest.raises(NoRow, match=f"dl3d sent {sent:.3f} frames for each that it got, so it {why}"):
        check_even("dl3d", _sample(1.0, sent))
    with pytest.raises(NoRow, match=r"sent 0\.000 frames"):
        check_even("dl3d", _sample(0.0, 0.0))


@dataclass
class _Runner:
    samples: list[Sample]
    job: Job = field(default_factory=lambda: Job("dl3d", ("true",), Path("t")))

    def measure(self, _seconds: float) -> Sample:
        return self.samples.pop(0)


def takes_another_sample_where_both_numbers_were_not_read_at_once() -> None:
    even, uneven = _sample(1.0, 1.0), _sample(1.0, 1.3)
    runner = _Runner([uneven, uneven, even])
    assert KnownOnly(cast(Any, runner)).measure(0.1) is even
    with pytest.raises(NoRow, match="flooded"):
        KnownOnly(cast(Any, _Runner([uneven, uneven, uneven]))).measure(0.1)


def gives_all_programs_the_same_frames_on_both_ports(place: Workplace) -> None:
    ours = make_bridge_dl3d(".", Entry("dl3d with a bridge", macs="few"), PairSettings(), place)
    peer = make_bridge_testpmd(Entry("testpmd io both ways", macs="few"), PairSettings(), place)
    assert ours.job.table == peer.job.table
    assert {environment(side.job, Path("s"))["ONECORE_BACK"] for side in (ours, peer)} == {"1"}
    whole = yaml.safe_load(Path(ours.job.command[1]).read_text(encoding="utf-8"))
    assert [port["device"] for port in whole["ports"]] == ["net_null0", "net_null1", "net_null2,no-rx=1"]
    (bridge,) = whole["bridges"]
    assert bridge["ports"] == [port["name"] for port in whole["ports"]]
    assert bridge["max_macs"] == 24
    assert "macs" not in bridge
    assert ours.job.begin
    assert not ours.job.begin()  # it does not run


def sends_each_address_to_its_port_in_open_vswitch(place: Workplace) -> None:  # noqa: ARG001
    lines = flow_lines(Entry("Open vSwitch", mode="static", macs="few"))
    known = [mac.hex(":") for mac in addresses("few")]
    assert lines == [f"dl_dst={mac},actions=output:{1 if i < 12 else 2}" for i, mac in enumerate(known)]
    assert flow_lines(OVS) == ["dl_src=02:d1:30:00:00:00/ff:ff:ff:00:00:00,actions=NORMAL"]


def gives_open_vswitch_room_for_all_addresses_and_the_same_devices(place: Workplace) -> None:
    terms = PairSettings(core=1, memory_mib=512)
    found = ovs_settings(terms, place, 24)
    assert (found["flow-limit"], found["pmd-cpu-mask"], found["dpdk-socket-mem"]) == ("48", "0x2", "512")
    assert f"-d {place.plugin} --vdev net_null0 --vdev net_null1 --vdev net_null2,no-rx=1" in found["dpdk-extra"]
    assert "other_config:mac-table-size=24" in bridge_words(24)
    assert [word for word in port_words(terms) if word.startswith("options:dpdk-devargs")] == [
        f"options:dpdk-devargs=net_null{i}" for i in range(3)
    ]


@dataclass(frozen=True)
class _Fake(Vswitch):
    """Open vSwitch that has learnt some addresses, and has some flows."""

    known: int = 24
    flows: tuple[int, ...] = (24,)
    error: str = ""
    said: list[str] = field(default_factory=list)

    def vsctl(self, *words: str) -> str:
        self.said.append(words[0] if words[0] == "get" else " ".join(words[:2]))
        if words[0] != "get":
            return ""
        return f'"{self.error}"\n' if words[3] == "error" else f"{1 + bridges.PORTS.index(words[2])}\n"

    def ofctl(self, method: str, *_words: str) -> str:
        self.said.append(method)
        return f"NXST_AGGREGATE reply: flow_count={self.known}\n"

    def appctl(self, *words: str) -> str:
        if words[0] == "fdb/stats-show":
            return f"  Current/maximum MAC entries in the table: {self.known}/24\n"
        n = self.said.count("shown")
        self.said.append("shown")
        return f"netdev@ovs-netdev:\n  flows: {self.flows[min(n, len(self.flows) - 1)]}\n"


@pytest.mark.usefixtures("place")
def waits_for_all_addresses_and_flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _Fake(tmp_path, flows=(3, 17, 24))
    ready = Configured(own, OVS, PairSettings())
    assert not ready()
    assert not own.said
    own.control.touch()
    assert [ready() for _ in range(3)] == [False] * 3
    assert own.said == ["--no-wait add-br"]
    own.openflow.touch()
    assert [ready() for _ in range(5)] == [False, False, False, False, True]
    assert [word for word in own.said if word not in ("get", "shown")] == [
        "--no-wait add-br",
        "add-flows",
        "--no-wait --",
    ]
    monkeypatch.setattr(bridges, "SAME_S", 0.0)
    few = Configured(_Fake(tmp_path, flows=(3,)), OVS, PairSettings(), has_ports=True)
    assert any(few() for _ in itertools.repeat(None, 10_000))  # it will not have more


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("mode", ["normal", "static"])
def has_no_row_where_open_vswitch_does_not_get_to_know_all(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = _Fake(tmp_path, known=23)
    ready = Configured(own, Entry("Open vSwitch", mode=mode, macs="few"), PairSettings(), 1e9, has_ports=True)
    assert not ready()
    monkeypatch.setattr(bridges, "PATIENCE_S", -2e9)
    with pytest.raises(NoRow, match="Open vSwitch knew 23 of 24 addresses after"):
        ready()


@pytest.mark.usefixtures("place")
def names_the_port_that_does_not_work(tmp_path: Path) -> None:
    own = _Fake(tmp_path, error="could not add it")
    with pytest.raises(Fault, match=r"^Open vSwitch: port left does not work: could not add it$"):
        Configured(own, OVS, PairSettings(), 1.0, has_flows=True)()
