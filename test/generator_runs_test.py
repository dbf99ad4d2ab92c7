"""The life cycle of dl3gen's runs: start, halt, replacement, many streams, two workers, requested rates."""

import itertools
import signal
import statistics
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness.answers import BACK, CORES, DL3GEN, PORTS, THERE, Bench, at_rest, flood, generator_text, port, stream
from harness.wire import wait_until

from dl3.control.generator import StreamResult
from dl3.lab.generator import Generator
from dl3.model.fault import UsageFault

TWO_WORKERS = [{"core": CORES[0], "queues": ["left/0"]}, {"core": CORES[-1], "queues": ["right/0"]}]
PCAP_HEAD, RECORD = 24, struct.Struct("<IIII")
GIGABIT_64 = 1e9 / (84 * 8)  # frames of 64 bytes on a line of 1 Gbit/s
RATES: dict[str, tuple[dict[str, Any], float]] = {
    "frames": ({"rate": "1.25 kpps"}, 1250),
    "a bare number": ({"rate": 777}, 777),
    "a share of the line": ({"rate": "50 %"}, GIGABIT_64 / 2),
    "the whole line": ({"rate": "100 %"}, GIGABIT_64),
    "bits at layer 1": ({"rate": "84 Mbit/s"}, 125_000),
    "bits at layer 2": ({"rate": "64 Mbit/s l2"}, 125_000),
    "bits of large frames": ({"rate": "500 Mbit/s", "size": 1518}, 5e8 / (1538 * 8)),
    "bits of a mix": ({"rate": "500 Mbit/s", "size": "classic"}, 5e8 / ((7 * 84 + 4 * 590 + 1538) / 12 * 8)),
    "as fast as can be": ({"rate": "max"}, 0),
}


def rates_are_what_they_are_called(tmp_path: Path) -> None:
    with Bench(tmp_path, ports=[port(0, line_rate="1 Gbit/s"), port(1)]) as bench:
        for keys, pps in RATES.values():
            (reported,) = bench.dl3gen.send(streams=[stream(frames=1, **keys)], delay=0).streams
            bench.dl3gen.finish(stragglers_s=0.0)
            assert reported["pps"] == pytest.approx(pps, rel=1e-9)


def _arrivals_us(path: Path) -> list[int]:
    """The arrival time of each frame on the wire, by the wire's clock."""
    whole, at, out = path.read_bytes(), PCAP_HEAD, []
    while at < len(whole):
        seconds, us, length, _ = RECORD.unpack_from(whole, at)
        out.append(seconds * 1_000_000 + us)
        at += RECORD.size + length
    return out


def _dump_of_all(folder: Path, n: int, **keys: Any) -> tuple[StreamResult, list[int]]:
    """Accounting and arrival times of a run without late frames; other runs are repeated."""
    for _ in range(20):
        with Bench(folder, [f"{THERE} dump={n}"], measures=True) as bench:
            reported, _ = bench.run_one(stream(frames=n, **keys))
            if reported.sent == n:
                return reported, _arrivals_us(bench.dumped())
    raise AssertionError("the core was taken away in each of 20 runs")


@pytest.mark.timing  # no frame may be late, and arrivals are compared
def the_reported_rate_is_that_of_the_wire(tmp_path: Path) -> None:
    reported, arrivals = _dump_of_all(tmp_path, 8000, rate="20 kpps")
    assert len(arrivals) == 8000
    # Between each frame and the 4000th after it, so that a few pauses make no difference.
    taken_us = statistics.median(after - before for before, after in zip(arrivals, arrivals[4000:], strict=False))
    assert reported.offered_pps == pytest.approx(4000 / taken_us * 1e6, rel=1e-3)


@pytest.mark.timing  # no frame may be late, and arrivals are compared
def frames_of_a_burst_are_due_together(tmp_path: Path) -> None:
    _, arrivals = _dump_of_all(tmp_path, 640, rate="10 kpps", burst=16)
    bursts = [arrivals[at : at + 16] for at in range(0, 640, 16)]
    together = statistics.median(burst[-1] - burst[0] for burst in bursts)
    apart = statistics.median(after[0] - before[0] for before, after in itertools.pairwise(bursts))
    assert together < 400
    assert 1200 < apart < 2000  # 1600 according to the schedule


def a_run_ends_by_its_frames_or_its_time_whichever_is_first(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        results = bench.run(stream(frames=50), seconds=3600)
        (by_frames,) = results.streams
        assert by_frames.sent + by_frames.late == 50
        by_time, _ = bench.run_one(stream(frames=100_000), seconds=0.05)
        assert by_time.sent + by_time.late == 5_000


def a_ring_comes_back_to_each_of_two_workers() -> None:
    rings = [port(i, device=f"net_ring{i}") for i in range(2)]
    text = generator_text([flood(to=name, from_=name, frames=500) for name in PORTS], ports=rings, workers=TWO_WORKERS)
    dl3gen = Generator(DL3GEN, text)
    try:
        dl3gen.wait_ready()
        dl3gen.send()
        dl3gen.finish(stragglers_s=0.0)
        assert [reported.received for reported in at_rest(dl3gen.results).streams] == [500, 500]
        assert dl3gen.stop() == 0
    finally:
        dl3gen.close()


def a_halted_run_keeps_its_account(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=1000000"]) as bench:
        bench.dl3gen.send(streams=[stream()], seconds=3600)
        wait_until(lambda: bench.dl3gen.results().streams[0].received > 100, "100 frames were received")
        assert bench.dl3gen.results().state == "sending"
        bench.dl3gen.call("halt")
        results = bench.finish()
        (reported,), (truth,) = results.streams, bench.truths()
        assert results.state == "done"
        assert reported.sent == reported.received == truth.taken > 100
        assert (reported.lost, reported.lost_by_gaps) == (0, 0)
        assert results.seconds < 1800, "the time until it was halted"


def a_running_account_never_goes_back(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} drop_every=10"]) as bench:
        bench.dl3gen.send(streams=[stream()], seconds=0.3)
        before = bench.dl3gen.results().streams[0]
        while (results := bench.dl3gen.results()).state == "sending":
            now = results.streams[0]
            assert now.sent >= before.sent
            assert now.received >= before.received
            assert now.sent >= now.received + now.corrupted
            before = now


def a_new_run_waits_until_the_one_before_is_halted(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=20000000 ring=32768 slot=128"]) as bench:
        for number in range(1, 6):
            assert bench.dl3gen.send(streams=[stream(rate="200 kpps")], seconds=3600).run == number
            with pytest.raises(UsageFault, match=f"run {number} is still sending; .* halt"):
                bench.dl3gen.send(streams=[stream()], seconds=1)
            wait_until(lambda: bench.dl3gen.results().streams[0].sent > 0, "a frame was sent")
            bench.dl3gen.call("halt")
            wait_until(lambda: bench.dl3gen.results().state == "done", "the run was over")
        reported = bench.run(flood(frames=1_000)).streams[0]
        assert (reported.sent, reported.received, reported.lost, reported.duplicated) == (1_000, 1_000, 0, 0)


def _has_received(bench: Bench, n: int) -> bool:
    return bench.dl3gen.results().streams[0].received >= n


def hundreds_of_runs_do_not_mix(tmp_path: Path) -> None:
    with Bench(tmp_path) as bench:
        first = bench.run(flood(frames=1)).run
        for number in range(1, 300):
            bench.dl3gen.send(streams=[flood(frames=number)], delay=0)
            wait_until(partial(_has_received, bench, number), "all frames came")
            results = bench.finish()
            (reported,) = results.streams
            assert results.run == first + number
            assert (reported.sent, reported.received, reported.duplicated) == (number, number, 0)


def frames_of_another_program_are_received(tmp_path: Path) -> None:
    # Frames of the first run stay on the wire until the second one has begun, which sends none.
    with Bench(tmp_path, [f"{THERE} drop_every=10"]) as bench:
        bench.hold(True)
        bench.dl3gen.send(streams=[flood(id=9, frames=1_000)])
        sent = bench.dl3gen.finish(stragglers_s=0.0).streams[0]
        bench.dl3gen.send(streams=[{"to": "right", "id": 9}], seconds=0.1)
        bench.hold(False)
        results = bench.finish()
        (reported,) = results.streams
        assert (sent.received, reported.received, reported.sent, reported.corrupted) == (0, 900, 999, 0)
        assert reported.lost == reported.lost_by_gaps == 99  # the 1000th, also lost, leaves no gap


def sixty_four_streams_at_once_are_distinguished(tmp_path: Path) -> None:
    ids = [4 * i for i in range(64)]
    with Bench(tmp_path, [f"{THERE} ring=32768 slot=128"]) as bench:
        results = bench.run(*(stream(id=i, rate="500 pps", frames=10 + i) for i in ids))
        assert [each.id for each in results.streams] == ids
        assert [each.sent + each.late for each in results.streams] == [10 + i for i in ids]
        assert all(each.sent == each.received for each in results.streams)
        assert sum(each.sent for each in results.streams) == bench.truths()[0].offered


def two_workers_account_as_one_does(tmp_path: Path) -> None:
    channels = [f"{THERE} drop_every=10 ring=65536 slot=128", f"{BACK} drop_every=20 ring=65536 slot=128"]
    with Bench(tmp_path, channels, workers=TWO_WORKERS) as bench:
        east, west = stream(name="east"), stream(name="west", from_="right", to="left", rate="50 kpps")
        results = bench.run(east, west, seconds=0.3)
        truths = bench.truths()
        assert len(results.workers) == 2
        assert {worker.core for worker in results.workers} == {CORES[0], CORES[-1]}
        for reported, truth in zip(results.streams, truths, strict=True):
            assert reported.sent == truth.offered > 0
            assert reported.lost == reported.lost_by_gaps == truth.lost == reported.sent - reported.received
            assert truth.dropped == reported.sent // (10 if reported.name == "east" else 20)


def sixteen_million_flows_can_be_asked_for(tmp_path: Path) -> None:
    counting = {"src_ip": {"first": "10.0.0.0", "count": 4096}, "src_port": {"first": 0, "count": 4096, "random": True}}
    with Bench(tmp_path, [f"{THERE} drop_every=10"]) as bench:
        reported, truth = bench.run_one(flood(frames=100_000, **counting))
        assert (reported.flows, reported.reordered_per) == (1 << 24, "stream")
        assert (reported.sent, reported.lost) == (100_000, truth.dropped)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, None])
def it_stops_in_order_while_it_sends(tmp_path: Path, how: signal.Signals | None) -> None:
    with Bench(tmp_path) as bench:
        bench.dl3gen.send(streams=[stream(rate="max")], seconds=60)
        if how:
            assert bench.dl3gen.stop(how) == 0
        else:
            bench.dl3gen.call("stop")
            assert bench.dl3gen.process.wait(60) == 0
        assert not bench.dl3gen.socket.exists()


def the_histogram_holds_every_frame(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=20000 late_every=10 late_ns=5000"]) as bench:
        bench.run(stream(rate="20 kpps", frames=2_000))
        (whole,) = bench.dl3gen.call("results", histograms=True)["streams"]
        for key in ("latency", "latency_from_sending"):
            reported = whole[key]
            assert sum(n for _, _, n in reported["histogram"]) == reported["n"] == whole["received"]
            shares = [reported[name] for name in ("min", "p50", "p90", "p99", "p99_9", "p99_99", "p99_999", "max")]
            assert shares == sorted(shares)
            assert reported["min"] <= reported["mean"] <= reported["max"]
            edges = [edge for low, high, _ in reported["histogram"] for edge in (low, high)]
            assert edges == sorted(edges)
