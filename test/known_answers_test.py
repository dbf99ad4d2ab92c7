"""Wires with known losses, duplicates, reordering and delays: dl3gen reports each of them exactly."""

from pathlib import Path
from typing import Any

import pytest
from harness.answers import BACK, THERE, VECTORS, Bench, Truth, eal, flood, port, stream

from dl3.control.generator import StreamResult

FLOWS = 8
UDP4_BYTES = 60  # of a frame of 64 without FCS
BYTE = {  # offset in such a frame
    "source MAC": 6,
    "IP length": 17,
    "TTL": 22,
    "IP checksum": 24,
    "source address": 29,
    "UDP length": 39,
    "UDP checksum": 41,
    "sequence": 49,
    "time": 54,
}

SHAPES: dict[str, dict[str, Any]] = {
    "udp": {},
    "tcp": {"protocol": "tcp"},
    "udp in ip6": {"dst_ip": "2001:db8::1"},
    "tcp in ip6 with a tag": {"dst_ip": "2001:db8::1", "protocol": "tcp", "vlan": 7},
    "a mix": {"size": "imix", "src_port": {"first": 1024, "count": 3}},
}


def _check_accounting(reported: StreamResult, truth: Truth) -> None:
    """Must hold for every run once no frames are in flight."""
    assert reported.sent == truth.offered
    assert reported.sent == reported.received + reported.lost
    assert reported.lost == reported.lost_by_gaps == truth.lost + truth.corrupted
    assert reported.received + reported.corrupted + reported.duplicated == truth.taken
    assert reported.refused == truth.refused


def a_wire_that_keeps_its_word_loses_nothing(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        reported, truth = bench.run_one(stream(), seconds=0.2)
        _check_accounting(reported, truth)
        assert 0 < reported.sent == reported.received
        assert reported.sent + reported.late == 20_000
        assert (reported.duplicated, reported.reordered, reported.corrupted, reported.too_old) == (0, 0, 0, 0)
        assert reported.received_bytes == reported.sent_bytes == reported.sent * 64
        (right,) = (each for each in bench.dl3gen.ports().ports if each.name == "right")
        assert (right.rx_packets, right.foreign, right.stale, right.misdirected) == (reported.received, 0, 0, 0)


def exactly_one_in_n_is_lost(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} drop_every=100"]) as bench:
        reported, truth = bench.run_one(flood(frames=20_000))
        _check_accounting(reported, truth)
        assert truth.dropped == reported.lost == 200
        assert reported.received == 19_800


def the_last_frame_of_a_run_and_the_first_are_missed_too(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} drop_every=1000"]) as bench:
        for frames, lost in ((1000, 1), (999, 0), (500, 1)):  # the last, none, the first
            reported, truth = bench.run_one(flood(frames=frames))
            _check_accounting(reported, truth)
            assert (reported.sent, reported.lost) == (frames, lost)


def duplicates_are_distinguished_from_frames(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} duplicate_every=50"]) as bench:
        reported, truth = bench.run_one(flood(frames=20_000))
        _check_accounting(reported, truth)
        assert truth.duplicated == reported.duplicated == 400
        assert (reported.received, reported.lost, reported.reordered) == (20_000, 0, 0)


@pytest.mark.parametrize(("flows", "by", "wanted"), [(1, 1, 100), (1, 5, 100), (FLOWS, 1, 0), (FLOWS, FLOWS, 100)])
def frames_that_change_places_are_counted_in_their_flow(tmp_path: Path, flows: int, by: int, wanted: int) -> None:
    with Bench(tmp_path, [f"{THERE} swap_every=100 swap_by={by}"]) as bench:
        reported, truth = bench.run_one(flood(frames=10_050, src_port={"first": 1024, "count": flows}))
        _check_accounting(reported, truth)
        assert truth.swapped == 100
        assert (reported.reordered, reported.reordered_per, reported.flows) == (wanted, "flow", flows)
        assert (reported.received, reported.lost, reported.duplicated) == (10_050, 0, 0)


def order_is_judged_in_the_stream_where_there_are_too_many_flows(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} swap_every=100 swap_by=1"]) as bench:
        reported, truth = bench.run_one(flood(frames=10_050, src_ip={"first": "198.18.0.1", "count": 65_537}))
        _check_accounting(reported, truth)
        assert (reported.reordered, reported.reordered_per, reported.flows) == (100, "stream", 65_537)


@pytest.mark.parametrize("what", [what for what in BYTE if what != "source MAC"])
def a_changed_byte_makes_a_frame_corrupted_and_never_received(tmp_path: Path, what: str) -> None:
    with Bench(tmp_path, [f"{THERE} corrupt_every=100 corrupt_at={BYTE[what]}"]) as bench:
        reported, truth = bench.run_one(flood(frames=10_000))
        _check_accounting(reported, truth)
        assert truth.corrupted == reported.corrupted == 100
        assert (reported.received, reported.lost, reported.duplicated, reported.reordered) == (9_900, 100, 0, 0)


@pytest.mark.parametrize(("protocol", "size", "at"), [("tcp", 128, 38), ("tcp", 128, 123), ("udp", 1518, 1513)])
def corruption_shows_in_every_protocol_and_at_every_place(tmp_path: Path, protocol: str, size: int, at: int) -> None:
    with Bench(tmp_path, [f"{THERE} corrupt_every=100 corrupt_at={at} corrupt_with=1"]) as bench:
        reported, truth = bench.run_one(flood(frames=5_000, protocol=protocol, size=size))
        _check_accounting(reported, truth)
        assert (reported.corrupted, reported.received) == (50, 4_950)


@pytest.mark.parametrize("at", [18, 30, 41, 60, 66, 73, 78])
def corruption_shows_in_ip6(tmp_path: Path, at: int) -> None:
    with Bench(tmp_path, [f"{THERE} corrupt_every=100 corrupt_at={at} corrupt_with=1"]) as bench:
        reported, truth = bench.run_one(flood(frames=5_000, dst_ip="2001:db8::1"))
        _check_accounting(reported, truth)
        assert (reported.corrupted, reported.received) == (50, 4_950)


@pytest.mark.parametrize("at", [12, 14, 23, 42, 43, 44])
def a_frame_that_is_no_longer_ours_is_foreign_or_corrupted_and_lost(tmp_path: Path, at: int) -> None:
    with Bench(tmp_path, [f"{THERE} corrupt_every=100 corrupt_at={at}"]) as bench:
        reported, truth = bench.run_one(flood(frames=5_000))
        (right,) = (each for each in bench.dl3gen.ports().ports if each.name == "right")
        assert (reported.sent, reported.received, reported.lost, reported.lost_by_gaps) == (5_000, 4_950, 50, 50)
        assert reported.corrupted + right.foreign + right.stale == truth.corrupted == 50
        assert right.rx_packets == truth.taken


@pytest.mark.parametrize("code", VECTORS)
@pytest.mark.parametrize("kind", SHAPES)
def all_at_once_are_distinguished(tmp_path: Path, kind: str, code: str) -> None:
    words = "drop_every=7 corrupt_every=11 corrupt_at=29 swap_every=13 swap_by=3 duplicate_every=17 delay_ns=20000"
    with Bench(tmp_path, [f"{THERE} {words}"], eal=eal(*VECTORS[code])) as bench:
        reported, truth = bench.run_one(flood(frames=50_000, **SHAPES[kind]))
        _check_accounting(reported, truth)
        # Both copies of a corrupted frame are corrupted, and neither is a duplicate.
        assert reported.corrupted + reported.duplicated == truth.corrupted + truth.duplicated
        assert reported.corrupted >= truth.corrupted
        assert 0 < reported.reordered <= truth.swapped


def streams_and_directions_are_accounted_for_each(tmp_path: Path) -> None:
    east = [flood(name=f"east{i}", id=i, frames=3_000 * (i + 1)) for i in range(3)]
    west = flood(name="west", id=200, from_="right", to="left", frames=7_000)
    with Bench(
        tmp_path, [f"{THERE} drop_every=10 ring=32768 slot=128", f"{BACK} drop_every=70 ring=32768 slot=128"]
    ) as bench:
        reported = {each.name: each for each in bench.run(*east, west).streams}
        there, back = bench.truths()
    assert reported["west"].lost == reported["west"].lost_by_gaps == back.dropped == 100
    assert [reported[f"east{i}"].sent for i in range(3)] == [3_000, 6_000, 9_000]
    assert sum(reported[f"east{i}"].lost for i in range(3)) == there.dropped == 1_800
    assert all(each.sent == each.received + each.lost for each in reported.values())


def a_ring_that_is_full_refuses_and_its_frames_are_sent_and_lost(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} limit_pps=50000 limit_depth=16 refuses=1"]) as bench:
        reported, truth = bench.run_one(stream(rate="100 kpps"), seconds=0.3)
        _check_accounting(reported, truth)
        assert truth.over_limit == 0 < truth.refused
        assert reported.lost == reported.refused == truth.refused
        assert reported.sent + reported.late == 30_000
        assert truth.taken < 20_000  # 15,017 unless the run is stretched by a stall


def an_earlier_run_leaves_nothing_behind(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=50000000 ring=16384 slot=128"]) as bench:  # has room for both runs
        bench.dl3gen.send(streams=[stream()], seconds=0.1)
        bench.dl3gen.call("halt")
        bench.dl3gen.finish(stragglers_s=0.0)
        reported = bench.run(flood(frames=1_000), delay=0.001).streams[0]
        assert (reported.sent, reported.received, reported.lost, reported.duplicated, reported.corrupted) == (
            1_000,
            1_000,
            0,
            0,
            0,
        )


def jumbo_frames_are_accounted_for(tmp_path: Path) -> None:
    ports = [port(i, mtu=9600) for i in range(2)]
    with Bench(tmp_path, [f"{THERE} slot=9700 drop_every=10"], ports=ports) as bench:
        reported, truth = bench.run_one(flood(size=9618, frames=1_000))
        _check_accounting(reported, truth)
        assert (reported.received, reported.lost, reported.sent_bytes) == (900, 100, 9_618_000)
