"""How close results come to the capability of the generator."""

from harness.records import Maker

from dl3.model.results import Proof, ProofPoint
from dl3.model.trial import Throughput, Trial
from dl3.report.proofs import Share, best_share, ceiling_share, is_short
from dl3.report.results import Record, gather

POINT = ProofPoint(
    frame="64", ceiling_pps=2e6, pacing_error=0, latency_min_ns=700, latency_p50_ns=900, jitter_mean_ns=10
)


def _result(wire: str) -> Throughput:
    return Maker().result("64", 1e6, facts={"lab": {"wire": wire}} if wire else {})


def _proof(wire: str, ceiling_pps: float) -> Proof:
    point = POINT.model_copy(update={"ceiling_pps": ceiling_pps})
    return Proof(at="t", campaign=_result(wire).campaign, wire=wire, points=(point,), facts={})


def _trial(received_pps: float, **changes: object) -> Trial:
    return Maker().trial("64", received_pps, received_pps=received_pps, facts={"lab": {"wire": "memif"}}, **changes)


def _shares(proof: Proof, *records: Record) -> tuple[Share | None, bool]:
    """The share of a result of 1 Mpps, and whether the self-test fell short."""
    results = gather([proof, *records, _result("memif")])
    return ceiling_share(_result("memif"), results), is_short(proof, proof.points[0], results)


def a_result_is_compared_with_the_proof_of_its_own_wire() -> None:
    memif, veth = _proof("memif", 4e6), _proof("veth", 2e6)
    results = gather([memif, veth, _result("memif")])
    assert ceiling_share(_result("memif"), results) == Share(0.25)
    assert ceiling_share(_result("veth"), results) == Share(0.5)
    assert ceiling_share(_result("vhost-user"), results) is None
    assert ceiling_share(_result(""), results) == Share(0.5)
    assert best_share(memif, memif.points[0], results) == Share(0.25)
    assert best_share(veth, veth.points[0], results) is None


def a_result_above_the_proof_is_at_most_all_of_the_ceiling() -> None:
    proof = _proof("memif", 0.6e6)
    assert _shares(proof) == (Share(1.0, is_at_most=True), True)
    results = gather([proof, _result("memif")])
    assert best_share(proof, proof.points[0], results) == Share(1.0, is_at_most=True)


def what_came_back_above_the_proof_counts_in_place_of_it() -> None:
    for test in ("throughput", "latency", "frame loss", "forwarding", "ceiling"):
        assert _shares(_proof("memif", 2e6), _trial(4e6, test=test)) == (Share(0.25, is_at_most=True), True), test


def what_shows_no_ceiling_does_not_count() -> None:
    late, lossy = {"invalid": ("late: the generator skipped 7 frames",)}, {"offered_pps": 9e6}
    burst, recovery, loop = ({"test": test} for test in ("back-to-back", "recovery", "proof"))
    for changes in (late, burst, recovery, loop, {"facts": {"lab": {"wire": "veth"}}}):
        assert _shares(_proof("memif", 2e6), _trial(4e6).model_copy(update=changes)) == (Share(0.5), False), changes
    assert _shares(_proof("memif", 2e6), _trial(1.5e6, **lossy)) == (Share(0.5), False)
    assert _shares(_proof("memif", 2e6), _trial(4e6, campaign="another"))[0] == Share(0.5)


def a_proof_of_one_campaign_is_not_compared_with_results_of_another_that_has_its_own() -> None:
    slow = _proof("memif", 2e6)
    fast = slow.model_copy(update={"campaign": "another", "points": (POINT.model_copy(update={"ceiling_pps": 8e6}),)})
    of_another = _result("memif").model_copy(update={"campaign": "another", "pps": 7e6})
    results = gather([slow, fast, _result("memif"), of_another])
    assert best_share(slow, slow.points[0], results) == Share(0.5)
    assert best_share(fast, fast.points[0], results) == Share(0.875)
    assert not is_short(slow, slow.points[0], results)
