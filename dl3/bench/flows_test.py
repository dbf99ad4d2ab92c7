"""Flows of a measurement: files, memory, and how both programs are started."""

import struct
from pathlib import Path

import pytest
import yaml

from dl3.bench import flows
from dl3.bench.flows import (
    FLOW_SETS,
    FlowFiles,
    FlowSet,
    FlowsReply,
    JobReply,
    Loaded,
    make_flow_dl3d,
    make_l3fwd_em,
    memory_of_l3fwd,
)
from dl3.bench.sides import Entry, PairSettings
from dl3.bench.workplace import Workplace
from dl3.lab.tables import ones_sum
from dl3.model.fault import Fault

MIB = 1 << 20


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Programs and tables in a folder of the test."""
    peer = tmp_path / "l3fwd-em" / "program"
    peer.parent.mkdir()
    peer.touch()
    (tmp_path / "l3fwd-em.json").write_text('{"march": "native"}', encoding="utf-8")
    (tmp_path / "dl3d").touch()
    monkeypatch.setattr(flows, "PEERS", tmp_path)
    monkeypatch.setattr(flows, "DL3D", tmp_path / "dl3d")
    monkeypatch.setattr(flows, "march_of_peer", lambda _: "native")
    monkeypatch.setattr(flows, "march_of_build", lambda _: "native")
    monkeypatch.setattr(FlowFiles, "write", lambda _: None)
    return Workplace(tmp_path, tmp_path / "onecore.so")


def writes_the_same_flows_for_the_frames_and_for_dl3d(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flows.FLOW_SETS, "few", FlowSet("random", 8))
    files = FlowFiles("few", 16, tmp_path)
    files.write()
    table, records = files.table.read_bytes(), files.flows.read_bytes()
    assert len(table) == 64 + 256 * 16
    assert len(records) == 64 * (1 + 256 + 16)
    head = table[:64]
    frames = [table[at : at + 16] for at in range(64, len(table), 16)]
    assert all(ones_sum(head[14:24] + f[12:14] + f[:8]) == 0xFFFF for f in frames)
    keys = [records[at : at + 64] for at in range(64, 64 * 257, 64)]
    assert sorted(f[:12] for f in frames) == sorted(k[:4] + k[16:20] + k[32:36] for k in keys)
    assert [f[:12] for f in frames] != [k[:4] + k[16:20] + k[32:36] for k in keys]  # another order
    magic, _, n_actions, n_flows = struct.unpack_from("<8s2IQ", records)
    assert (magic, n_actions, n_flows) == (b"DL3FLOWS", 16, 256)
    assert {struct.unpack_from("<I", key, 40)[0] for key in keys} == set(range(16))
    assert [records[at + 8 : at + 12] for at in (64 * 257, 64 * 272)] == [bytes([10, 1, 0, 1]), bytes([10, 1, 0, 16])]
    before = files.table.stat().st_mtime_ns
    files.write()
    assert files.table.stat().st_mtime_ns == before
    assert len(list(tmp_path.iterdir())) == 2


def leaves_no_draft_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flows.FLOW_SETS, "none", FlowSet("random", 99))
    with pytest.raises(Fault, match="failed with status 2: usage"):
        FlowFiles("none", 16, tmp_path).write()
    assert not list(tmp_path.iterdir())


def has_the_table_of_the_white_paper() -> None:
    found = FLOW_SETS["33m-white-paper"]
    assert (found.number, found.entries) == (2 * 16_777_216, 0x2000000)
    assert found.l3fwd_mib == 1024 + 256 + 256  # keys, buckets, ring


def leaves_space_in_a_table_of_random_keys() -> None:
    assert all(s.entries >= s.number * 1.2 for s in FLOW_SETS.values() if s.kind == "random")


def gives_l3fwd_more_memory_only_for_a_table_that_needs_it() -> None:
    terms = PairSettings(memory_mib=1024)
    assert memory_of_l3fwd(FLOW_SETS["1m"], terms) == 1024
    assert memory_of_l3fwd(FLOW_SETS["33m-white-paper"], terms) == 1024 + 1536


def starts_dl3d_with_a_table_as_large_as_the_flows_and_drops_the_rest(place: Workplace) -> None:
    made = make_flow_dl3d(Entry("dl3d with flows", flows="1m"), PairSettings(), place)
    whole = yaml.safe_load(Path(made.job.command[1]).read_text(encoding="utf-8"))
    files = FlowFiles("1m", 256)
    assert whole["flow"] == {"ipv4": 1 << 20, "missing": "drop", "file": str(files.flows)}
    assert {f"10.1.0.{i}" for i in range(1, 256)} | {"10.1.1.0"} <= {line.split()[0] for line in whole["neighbours"]}
    assert made.job.table == files.table
    assert made.job.begin == Loaded(Path(whole["control"]["socket"]), 1 << 20)


def starts_l3fwd_with_the_same_frames(place: Workplace) -> None:
    made = make_l3fwd_em(Entry("l3fwd exact match", flows="33m-white-paper"), PairSettings(), place)
    assert {"--lookup=em", "--hash-entry-num=0x2000000"} <= set(made.job.command)
    assert made.job.command[made.job.command.index("-m") + 1] == "2560"
    assert made.job.table == FlowFiles("33m-white-paper", 256).table


def is_not_loaded_while_dl3d_does_not_reply(tmp_path: Path) -> None:
    assert not Loaded(tmp_path / "none.sock", 1)()


class _Answers:
    """A client that replies with these values."""

    def __init__(self, state: str, n_flows: int) -> None:
        self.state, self.n_flows = state, n_flows

    def ask(self, _: type, method: str) -> object:
        if method == "flows.job":
            return JobReply(state=self.state, reason="action 0: no such interface")
        return FlowsReply(ipv4=FlowsReply.Family(flows=self.n_flows))


@pytest.mark.parametrize(("state", "n_flows", "is_loaded"), [("running", 3, False), ("done", 8, True)])
def is_loaded_when_the_table_has_all(
    state: str, n_flows: int, is_loaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "Client", lambda *_: _Answers(state, n_flows))
    assert Loaded(Path("x"), 8)() is is_loaded


def tells_why_flows_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "Client", lambda *_: _Answers("failed", 0))
    with pytest.raises(Fault, match="dl3d cannot load the flows: action 0: no such interface"):
        Loaded(Path("x"), 8)()
