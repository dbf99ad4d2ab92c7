"""What dl3gen counts and expects by flow, against frames as they were sent and a computation of its own."""

import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.answers import CORES, THERE, Bench, flood
from scapy.utils import RawPcapReader

from dl3.lab.generator import Generator
from dl3.model.fault import Fault
from dl3.model.generator_flows import (
    U64,
    Stream,
    bytes_per_flow,
    expected,
    flows_of,
    frames_per_flow,
    n_flows,
    read_counts,
    tuples,
)

FRAMES = 2000
Tuple = tuple[int, bytes, bytes, int, int]

# Ascending and scattered fields, all combinations or only some.
FLOWS: dict[str, dict[str, Any]] = {
    "one flow": {},
    "ascending": {"src_ip": {"first": "198.18.255.250", "count": 9}, "dst_port": {"first": 7, "count": 5}},
    "scattered": {
        "src_ip": {"first": "10.0.0.1", "count": 12, "random": True},
        "dst_ip": {"first": "198.19.0.9", "count": 10, "random": True},
        "src_port": {"first": 65000, "count": 15, "random": True},
    },
    "both": {
        "src_ip": {"first": "10.0.0.1", "count": 4},
        "dst_ip": {"first": "198.19.0.9", "count": 6, "random": True},
        "src_port": {"first": 1, "count": 10, "random": True},
        "dst_port": {"first": 1, "count": 15},
        "flows": 3599,
    },
    "millions": {
        "src_ip": {"first": "10.0.0.1", "count": 4096, "random": True},
        "dst_ip": {"first": "10.128.0.0", "count": 4096, "random": True},
        "protocol": "tcp",
        "flows": 3_000_000,
    },
    "IPv6": {
        "src_ip": {"first": "2001:db8::ff00:0", "count": 300, "random": True},
        "dst_ip": {"first": "2001:db8:1::", "count": 70},
        "dst_port": {"first": 1, "count": 2, "random": True},
        "flows": 20_000,
    },
    "IPv6 with a tag": {"dst_ip": {"first": "2001:db8:1::", "count": 7}, "vlan": 5, "protocol": "tcp"},
}


def counted(**keys: Any) -> dict[str, Any]:
    """A stream with counters, as fast as possible, with a seed that was never used before."""
    more = {"distribution": "uniform", "seed": secrets.randbits(32), "count_flows": True}
    return flood(frames=FRAMES, **(more | keys))


def counts(dl3gen: Generator, name: str = "stream0") -> U64:
    """What dl3gen has counted, read from its file."""
    path = dl3gen.folder / "counts"
    reply = dl3gen.call("flow_counts", stream=name, path=str(path))
    read = read_counts(path.read_bytes())
    assert (reply["flows"], reply["received"]) == (len(read), read.sum())
    return read


def _tuple(frame: bytes, tag: int) -> Tuple:
    """Protocol, addresses and ports of a frame with a tag of this many bytes."""
    is_ip6 = frame[12 + tag : 14 + tag] == b"\x86\xdd"
    at, addr = (14 + tag + 8, 16) if is_ip6 else (14 + tag + 12, 4)
    ports = at + 2 * addr
    protocol = frame[14 + tag + 6] if is_ip6 else frame[14 + tag + 9]
    src_port, dst_port = (int.from_bytes(frame[ports + i : ports + i + 2]) for i in (0, 2))
    return protocol, frame[at : at + addr], frame[at + addr : at + 2 * addr], src_port, dst_port


def _order(stream: Stream) -> U64:
    """The flow of each frame."""
    return flows_of(stream, np.arange(FRAMES, dtype=np.uint64)).astype(np.uint64)


def _computed(stream: Stream) -> list[Tuple]:
    """The same of all frames of a stream, computed."""
    found = tuples(stream, _order(stream))
    sources, targets = ([bytes(row) for row in column] for column in (found.src, found.dst))
    ports = (found.src_port.tolist(), found.dst_port.tolist())
    return list(zip([found.protocol] * FRAMES, sources, targets, *ports, strict=True))


@pytest.mark.parametrize("name", FLOWS)
def flows_are_those_of_the_frames(tmp_path: Path, name: str) -> None:
    scattered = counted(**FLOWS[name])
    in_turn = {key: value for key, value in scattered.items() if key not in ("distribution", "seed")}
    computed = []
    with Bench(tmp_path, [f"{THERE} dump={2 * FRAMES}"]) as bench:
        for stream in (in_turn, scattered):
            reported, _ = bench.run_one(stream)
            assert (reported.sent, reported.received) == (FRAMES, FRAMES)
            assert reported.flows == n_flows(stream)
            assert (counts(bench.dl3gen) == frames_per_flow(stream, FRAMES)).all(), stream
            computed += _computed(stream)
        frames = [frame for frame, _ in RawPcapReader(str(bench.dumped()))]
    assert [_tuple(frame, 4 if "vlan" in scattered else 0) for frame in frames] == computed, scattered


def sizes_of_a_mix_are_those_of_the_frames(tmp_path: Path) -> None:
    mix = [{"size": 70, "weight": 9}, {"size": 128, "weight": 6}, {"size": 1500, "weight": 3}]
    stream = counted(**FLOWS["scattered"], size=mix)
    with Bench(tmp_path, [f"{THERE} dump={FRAMES}"]) as bench:
        reported, _ = bench.run_one(stream)
        by_flow = np.zeros(n_flows(stream), np.uint64)
        for flow, (frame, _) in zip(_order(stream).tolist(), RawPcapReader(str(bench.dumped())), strict=True):
            by_flow[flow] += len(frame)
    computed = bytes_per_flow(stream, FRAMES)
    assert (computed == by_flow).all(), stream
    assert computed.sum() == reported.received_bytes - 4 * FRAMES


def lost_and_repeated_frames_make_no_difference_to_others(tmp_path: Path) -> None:
    stream = counted(**FLOWS["scattered"])
    with Bench(tmp_path, [f"{THERE} drop_every=7 duplicate_every=11"]) as bench:
        reported, truth = bench.run_one(stream)
        received = counts(bench.dl3gen)
    sent = frames_per_flow(stream, FRAMES)
    assert truth.dropped
    assert reported.duplicated == truth.duplicated > 0
    assert received.sum() == reported.received == FRAMES - truth.dropped
    assert (received <= sent).all(), stream


@pytest.mark.parametrize("name", ["scattered", "millions", "IPv6"])
def actions_are_judged_by_the_formula_of_the_guide(tmp_path: Path, name: str) -> None:
    ports, dscps = ["left", "right"], [0, 10, 46]
    expect = {"secret": secrets.randbits(63), "ports": ports, "dscps": dscps}
    stream = counted(**FLOWS[name], expect=expect)
    with Bench(tmp_path, [THERE], workers=[{"core": CORES[-1]}]) as bench:
        reported, _ = bench.run_one(stream)
    order = _order(stream)
    wanted, found = expected(stream, order), reported.expect
    # All frames arrive on right, with the DSCP of the generator.
    is_port, is_dscp = wanted.port == 1, wanted.dscp == 0
    assert found
    assert (found.checked, found.alternative, found.wrong_tuple) == (FRAMES, 0, 0)
    assert (found.wrong_port, found.wrong_dscp) == ((~is_port).sum(), (is_port & ~is_dscp).sum()), stream
    first = int(np.argmax(~(is_port & is_dscp)))
    assert found.first_wrong
    assert (found.first_wrong.sequence, found.first_wrong.flow) == (first, order[first])
    assert (found.first_wrong.found.port, found.first_wrong.found.dscp) == ("right", 0)
    by_formula = (ports[wanted.port[first]], dscps[wanted.dscp[first]])
    assert (found.first_wrong.expected.port, found.first_wrong.expected.dscp) == by_formula


def counters_are_those_of_the_latest_run(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        with pytest.raises(Fault, match="the latest run has no stream stream0"):
            counts(bench.dl3gen)
        for frames in (FRAMES, 3):
            stream = counted(**FLOWS["millions"]) | {"frames": frames}
            bench.run_one(stream)
            assert (counts(bench.dl3gen) == frames_per_flow(stream, frames)).all(), stream
        bench.run_one(flood(frames=3))
        with pytest.raises(Fault, match='the flows of stream stream0 are not counted; add "count_flows: true" to it'):
            counts(bench.dl3gen)
