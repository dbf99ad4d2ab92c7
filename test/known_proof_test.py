"""dl3gen's self-test over a wire with known limit and delay."""

from pathlib import Path

import pytest
from harness.answers import AS_DUE, THERE, Bench, stream
from harness.wired import BUILD

from dl3.bench.proof import prove
from dl3.bench.site import Run
from dl3.control.client import Client
from dl3.model.results import Proof
from dl3.model.stream import Stream
from dl3.record.reader import read
from dl3.trial.order import Site
from dl3.trial.run import Runner

LIMIT_PPS, DELAY_NS = 100_000, 20_000
DEPTH = 8  # frames that pass the limit at once
ATTEMPTS = 5
TOLERANCE_NS = 5_000 if BUILD.name == "build" else 50_000  # on a shared core


def _proved(bench: Bench, record: Path) -> Proof:
    """With short trials: many of them finish before another process needs the core."""
    site = Site(Client(bench.dl3gen.socket), dut_name="loop", campaign="now")
    run = Run(Runner(site), (Stream.model_validate(stream()),), record, seconds=0.1, warm_up_s=0.0)
    return prove(run, ("64",), "known")


@pytest.mark.timing
def proves_ceiling_pacing_and_floor_of_a_known_wire(tmp_path: Path) -> None:
    wire = f"{THERE} limit_pps={LIMIT_PPS} limit_depth={DEPTH} {AS_DUE} delay_ns={DELAY_NS} ring=16384 slot=128"
    record, proofs = tmp_path / "r.jsonl", list[Proof]()
    with Bench(tmp_path, [wire], measures=True) as bench:
        while len(proofs) < ATTEMPTS and (not proofs or _is_spoilt(proofs[-1])):
            proofs.append(_proved(bench, record))
    (point,) = proofs[-1].points
    assert point.ceiling_pps == pytest.approx(LIMIT_PPS, rel=0.02), point.invalid
    assert abs(point.pacing_error) <= 0.001
    assert DELAY_NS * 0.995 <= point.latency_min_ns <= point.latency_p50_ns <= DELAY_NS + TOLERANCE_NS
    assert _kinds(proofs[-1]) == ["loop"], "the wire, not dl3gen, was the limit"
    assert read(record).proofs == tuple(proofs)


def _kinds(proof: Proof) -> list[str]:
    """The subjects of its reasons."""
    return [sentence.split(":")[0] for sentence in proof.points[0].invalid]


def _is_spoilt(proof: Proof) -> bool:
    """Whether dl3gen repeatedly lost its core: it says so, or reports itself as the limit."""
    return _kinds(proof) != ["loop"]
