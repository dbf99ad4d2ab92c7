"""Rules of the comparison."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dl3.bench import contest
from dl3.bench.contest import ROWS, Effort, Row, check_equal, rows_named, run_row, take_row
from dl3.bench.contestants import MAKERS
from dl3.bench.flows import FLOW_SETS
from dl3.bench.generators import DOING, FLOWS
from dl3.bench.macs import MAC_SETS
from dl3.bench.norow import NoRow
from dl3.bench.onecore import Job
from dl3.bench.sides import Contestant, Entry, PairSettings
from dl3.bench.workplace import Workplace
from dl3.model.fault import Fault, UsageFault
from dl3.model.sample import Sample


@dataclass
class Fake:
    """A program that records how it is used."""

    name: str
    seen: list[str]

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def measure(self, seconds: float) -> Sample:
        self.seen.append(f"{self.name} {seconds:g}")
        return Sample(seconds, 1.0, 1.0, 1.0, 1.0)


def _both_fakes(monkeypatch: pytest.MonkeyPatch, seen: list[str], unequal: int = 0) -> Row:
    """A row of two fakes whose first `unequal` starts cannot be compared."""

    def side(name: str) -> Contestant:
        @contextmanager
        def start() -> Iterator[Fake]:
            seen.append(f"start {name}")
            if name == "b" and seen.count("start b") <= unequal:
                raise NoRow("too little was offered")
            yield Fake(name, seen)

        return Contestant(Job(name, ("true",), Path("t")), "native", start)

    monkeypatch.setattr(contest, "sides_of", lambda *_: (side("a"), side("b")))
    return Row("row", Entry("dl3d with TAP interfaces"), Entry("dl3d"))


def starts_programs_anew_whose_memory_lies_elsewhere_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    row = _both_fakes(monkeypatch, seen)
    pairs, again = run_row(row, PairSettings(), Workplace(tmp_path, tmp_path), Effort(starts=2, seconds=0.5))
    assert (len(pairs), again) == (10, 0)
    first, second = ["a 0.5", "b 0.5"], ["b 0.5", "a 0.5"]
    assert seen[:12] == ["start a", "start b", *first, *second, *first, *second, *first]
    assert seen[12:] == ["start b", "start a", *second, *first, *second, *first, *second]


def makes_a_start_again_that_compares_nothing_but_not_forever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place, effort = Workplace(tmp_path, tmp_path), Effort(starts=2, seconds=0.5)
    seen: list[str] = []
    row = _both_fakes(monkeypatch, seen, unequal=2)
    pairs, again = run_row(row, PairSettings(), place, effort)
    assert (len(pairs), again) == (10, 2)
    assert seen[:6] == ["start a", "start b", "start a", "start b", "start a", "start b"]
    assert seen.count("start b") == 4
    seen = []
    row = _both_fakes(monkeypatch, seen, unequal=3)
    with pytest.raises(NoRow, match="too little was offered"):
        run_row(row, PairSettings(), place, effort)
    assert seen.count("start b") == 3


def starts_programs_less_often_that_take_long_to_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    row = replace(_both_fakes(monkeypatch, seen), most_starts=2)
    pairs, again = run_row(row, PairSettings(), Workplace(tmp_path, tmp_path), Effort(starts=5, seconds=0.5))
    assert (len(pairs), again, seen.count("start a")) == (10, 0, 2)


def has_no_row_where_space_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    row = _both_fakes(monkeypatch, seen)

    @contextmanager
    def none(*_: object) -> Iterator[None]:
        raise NoRow("no row: it needs 7.1 GiB")
        yield

    monkeypatch.setattr(contest, "space_for", none)
    found = take_row(row, PairSettings(), Workplace(tmp_path, tmp_path), Effort(starts=1, seconds=0.5))
    assert (found.comparison, found.reason) == (None, "no row: it needs 7.1 GiB")
    assert not seen


def compares_the_same_flows_and_rules() -> None:
    for row in rows_named(["flows-64k", "flows-1m", "flows-33m-random", "flows-33m-white-paper", "acl-1k", "acl-10k"]):
        assert (row.ours.flows, row.ours.rules) == (row.peer.flows, row.peer.rules)
    assert all(FLOW_SETS[e.flows] for row in ROWS for e in (row.ours, row.peer) if e.flows)


def compares_bridges_that_know_the_same_addresses() -> None:
    rows = [row for row in ROWS if row.name.startswith("bridge-")]
    assert {row.ours.macs for row in rows} == set(MAC_SETS)
    for row in rows:
        assert row.ours.macs == row.peer.macs
        assert row.name.startswith(f"bridge-{row.ours.macs}-macs")
        assert ("NORMAL" in row.note) is (row.peer.mode == "normal")
        assert row.most_starts == 2 or MAC_SETS[row.ours.macs].number < 10_000


def compares_vxlan_with_the_same_frames() -> None:
    for row in rows_named(["vxlan-bridge", "vxlan-encap"]):
        assert (row.ours.macs, row.ours.mode) == (row.peer.macs, row.peer.mode)
        assert "without UDP checksum" in row.note


def has_the_rows_that_the_product_promises() -> None:
    assert {row.name for row in ROWS} >= {
        *("ipv4-1-route", "ipv4-1-route-alike", "ipv4-1m-routes", "ipv4-1m-routes-alike"),
        *("ipv6-1-route", "ipv6-200k-routes"),
        *("flows-64k", "flows-1m", "flows-33m", "acl-1k", "acl-10k"),
        *("xconnect", "xconnect-mac", "self-1m-over-1", "ipv4-1m-routes-half-load"),
        *("memif-2-core", "generator-multi-flow", "generator-memif", "sink"),
        *("generator-flowgen", "generator-16m-flows", "generator-memif-flowgen"),
        *("bridge-4k-macs", "bridge-4k-macs-static", "bridge-1m-macs", "bridge-1m-macs-static", "vhost-io"),
        *("vxlan-bridge", "vxlan-encap", "vxlan-decap-route"),
        *("mirror-ipv4-1-route", "mirror-ipv4-1m-routes", "mirror-zero-loss", "vlans-16-vrfs", "pipeline-handover"),
        *("police-1m", "shape-64k-active"),
        *("mpls-swap", "mpls-udp-encap", "mpls-udp-decap"),
    }
    assert {side.program for row in ROWS for side in (row.ours, row.peer)} <= set(MAKERS)


@pytest.mark.parametrize("wire", ["", "-memif"])
def holds_dl3gen_against_both_generators_of_testpmd_over_each_wire(wire: str) -> None:
    name = "generator-memif" if wire else "generator-multi-flow"
    txonly, flowgen = rows_named([name, f"generator{wire}-flowgen"])
    assert txonly.ours == flowgen.ours
    assert DOING[txonly.peer.mode][0] == "--forward-mode=txonly"
    assert DOING[flowgen.peer.mode][0] == "--forward-mode=flowgen"
    assert f"{FLOWS:,} flows" in flowgen.note


def picks_rows_by_name() -> None:
    assert [row.name for row in rows_named(["xconnect", "ipv4-1-route"])] == ["xconnect", "ipv4-1-route"]
    assert rows_named([]) == ROWS


def names_the_rows_when_one_is_unknown() -> None:
    with pytest.raises(UsageFault, match="unknown row 'ipv5'; expected one of ipv4-1-route"):
        rows_named(["ipv5"])


def refuses_unequal_march() -> None:
    job = Job("x", ("true",), Path("t"))
    row = Row("row", Entry("dl3d"), Entry("l3fwd"))
    check_equal(row, Contestant(job, "native"), Contestant(job, "native"))
    with pytest.raises(Fault, match="dl3d was built with -march=native, l3fwd with -march=corei7"):
        check_equal(row, Contestant(job, "native"), Contestant(job, "corei7"))
