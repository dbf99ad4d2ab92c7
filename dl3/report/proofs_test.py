"""How far results are from what the tester itself can."""

from harness.records import Maker

from dl3.model.answers import Proof, ProofPoint
from dl3.model.trial import Throughput
from dl3.report.global_tables import best_share
from dl3.report.proofs import ceiling_share
from dl3.report.results import gather

POINT = ProofPoint(
    frame="64", ceiling_pps=2e6, pacing_error=0, latency_min_ns=700, latency_p50_ns=900, jitter_mean_ns=10
)


def _answer(wire: str) -> Throughput:
    return Maker().answer("64", 1e6, facts={"lab": {"wire": wire}} if wire else {})


def _proof(wire: str, ceiling_pps: float) -> Proof:
    point = POINT.model_copy(update={"ceiling_pps": ceiling_pps})
    return Proof(at="t", campaign=_answer(wire).campaign, wire=wire, points=(point,), facts={})


def an_answer_is_held_against_the_proof_of_its_own_wire() -> None:
    memif, veth = _proof("memif", 4e6), _proof("veth", 2e6)
    results = gather([memif, veth, _answer("memif")])
    assert ceiling_share(_answer("memif"), results) == 0.25
    assert ceiling_share(_answer("veth"), results) == 0.5
    assert ceiling_share(_answer("vhost-user"), results) is None
    assert ceiling_share(_answer(""), results) == 0.5
    assert best_share(memif, memif.points[0], results) == 0.25
    assert best_share(veth, veth.points[0], results) is None
