"""The tester's self-test, simulated: ceiling, pacing, latency floor, and invalid results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.fake import course_of
from dl3.bench.proof import LOOP, loop_of, prove
from dl3.host.noise import Look
from dl3.model.campaign import DutSpec, Setup
from dl3.model.fault import Fault
from dl3.model.results import ProofPoint
from dl3.record.reader import read
from dl3.trial.fake import FakeGenerator


def proved(generator: FakeGenerator, folder: Path) -> ProofPoint:
    return prove(course_of(generator, folder), ("64",), "memif").points[0]


def takes_full_speed_without_loss_for_the_ceiling(tmp_path: Path) -> None:
    run = course_of(FakeGenerator(device_pps=50e6), tmp_path)
    proof = prove(run, ("64", "imix"), "memif")
    assert [point.frame for point in proof.points] == ["64", "imix"]
    for point in proof.points:
        assert (point.ceiling_pps, point.invalid) == (20e6, ())
        assert (point.latency_min_ns, point.latency_p50_ns, point.jitter_mean_ns) == (4000, 4000, 5)
        assert abs(point.pacing_error) < 1e-6
    record = read(run.record)
    assert record.proofs == (proof,)
    assert {trial.test for trial in record.trials} == {"proof"}
    asked = [trial.asked_pps for trial in record.trials if trial.frame == "64"]
    assert asked == [0, 10e6, 2e6]


def searches_the_ceiling_below_the_rate_that_it_cannot_keep(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        late = stream["asked_pps"] > 12e6 or not stream["asked_pps"]
        stream["late"] = stream["sent"] // 10 if late else 0

    point = proved(FakeGenerator(device_pps=50e6, spoil=spoil), tmp_path)
    assert point.ceiling_pps == pytest.approx(12e6, rel=0.02)
    assert point.invalid == ()


def reports_that_the_machine_was_noisy(tmp_path: Path) -> None:
    run = replace(course_of(FakeGenerator(), tmp_path), look=lambda: Look(shares={0: 0.5}))
    assert prove(run, ("64",), "memif").noise == ("share: a probe received only 50.0% of core 0",)


def reports_that_the_loop_was_the_limit(tmp_path: Path) -> None:
    point = proved(FakeGenerator(device_pps=8e6), tmp_path)
    assert point.ceiling_pps == pytest.approx(8e6, rel=0.02)
    assert len(point.invalid) == 1
    assert point.invalid[0].startswith("loop: it lost frames at 8.")


def proves_nothing_where_all_trials_are_invalid(tmp_path: Path) -> None:
    point = proved(FakeGenerator(spoil=lambda results: results.update(tsc_offset_ns=500.0)), tmp_path)
    assert point.ceiling_pps == 0
    assert "the TSCs of two workers are 500 ns apart" in point.invalid[0]
    point = proved(FakeGenerator(ceiling_pps=0.01), tmp_path)
    assert point.invalid == ("no result: late: the generator sent nothing",)


def repeats_what_is_invalid_and_reports_what_stays_so(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        stream["offered_pps"] *= 1.01 if stream["asked_pps"] == 10e6 else 1

    point = proved(FakeGenerator(device_pps=50e6, spoil=spoil), tmp_path)
    assert point.pacing_error == pytest.approx(0.01)
    assert point.invalid == ("pacing: stream 'stream0' was offered 1.00% above its rate",)


def puts_a_loop_where_the_device_stood() -> None:
    setup = Setup(dut=DutSpec(name="dl3d", kind="dl3d"), cores=2, dut_cores=(1, 3), descriptors=512, routes="1m")
    loop = loop_of(setup, "veth")
    assert (loop.dut.name, loop.dut.kind, loop.dut.options) == (LOOP, "testpmd", {"mode": "io", "wire": "veth"})
    assert (loop.cores, loop.dut_cores, loop.descriptors, loop.routes) == (1, (1,), 512, "one")
    with pytest.raises(Fault, match="there is no loop for the wire 'vhost': join two ports of dl3gen with a cable"):
        loop_of(setup, "vhost")
