"""Self-proof: what the tester itself can, and how far results are from it."""

from dl3.model.answers import Proof, ProofPoint
from dl3.model.trial import Throughput, wire_of
from dl3.report.results import Measured, Results


def is_over(record: Measured, proof: Proof) -> bool:
    """Whether something was measured over the wire of a proof, as far as it says over which."""
    return wire_of(record.facts) in ("", proof.wire)


def proof_for(record: Measured, results: Results) -> ProofPoint | None:
    """The tester's own figures with the same frames over the same wire: of the same campaign, else of any other."""
    proofs = [proof for proof in results.proofs if is_over(record, proof)]
    same = [proof for proof in proofs if proof.campaign == record.campaign]
    points = [point for proof in same or proofs for point in proof.points if point.frame == record.frame]
    return points[-1] if points else None


def ceiling_share(search: Throughput, results: Results) -> float | None:
    """Which share of the tester's ceiling an answer is; None without a proof."""
    point = proof_for(search, results)
    return search.pps / point.ceiling_pps if point and not point.invalid and point.ceiling_pps > 0 else None


def points_of(results: Results) -> list[tuple[Proof, ProofPoint]]:
    """All points of all proofs."""
    return [(proof, point) for proof in results.proofs for point in proof.points]
