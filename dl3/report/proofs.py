"""Self-test: the capability of the generator itself, and how close results come to it."""

from dataclasses import dataclass

from dl3.model.results import Proof, ProofPoint
from dl3.model.trial import Throughput
from dl3.report.results import Measured, Results, Tester, tester_of
from dl3.report.units import mpps, percent
from dl3.report.words import Words


@dataclass(frozen=True)
class Share:
    """The share of the generator's ceiling; an upper bound if more came back from a device than in the self-test."""

    value: float
    is_at_most: bool = False


def is_over(tester: Tester, proof: Proof) -> bool:
    """Whether anything was measured over the wire of a self-test, as far as the record names it."""
    return tester.wire in ("", proof.wire)


def proofs_of(tester: Tester, results: Results) -> list[Proof]:
    """The self-tests over the same wire: of the same campaign, else of any other."""
    over = [proof for proof in results.proofs if is_over(tester, proof)]
    return [proof for proof in over if proof.campaign == tester.campaign] or over


def is_of(tester: Tester, proof: Proof, results: Results) -> bool:
    """Whether a result is compared with this self-test."""
    return any(one is proof for one in proofs_of(tester, results))


def proof_for(record: Measured, results: Results) -> ProofPoint | None:
    """The generator's own figures with the same frames over the same wire."""
    proofs = proofs_of(tester_of(record), results)
    points = [point for proof in proofs for point in proof.points if point.frame == record.frame]
    return points[-1] if points else None


def share_of(search: Throughput, point: ProofPoint, results: Results) -> Share | None:
    """The share of the generator's ceiling: of the proven one, or of a higher rate received since."""
    if point.ceiling_pps <= 0:
        return None
    reached_pps = results.reached.get(tester_of(search), 0.0)
    return Share(search.pps / max(point.ceiling_pps, reached_pps), reached_pps > point.ceiling_pps)


def ceiling_share(search: Throughput, results: Results) -> Share | None:
    """The share according to the available self-test; None without a valid one."""
    point = proof_for(search, results)
    return share_of(search, point, results) if point and not point.invalid else None


def is_short(proof: Proof, point: ProofPoint, results: Results) -> bool:
    """Whether more came back from a device than in the self-test."""
    return point.ceiling_pps > 0 and any(
        tester.frame == point.frame and reached_pps > point.ceiling_pps and is_of(tester, proof, results)
        for tester, reached_pps in results.reached.items()
    )


def best_result(proof: Proof, point: ProofPoint, results: Results) -> Throughput | None:
    """The highest result with the same frames over the same wire."""
    same = [one for one in results.searches if one.frame == point.frame and is_of(tester_of(one), proof, results)]
    return max(same, key=lambda one: one.pps, default=None)


def best_share(proof: Proof, point: ProofPoint, results: Results) -> Share | None:
    """How close it came to the generator's ceiling."""
    best = best_result(proof, point, results)
    return share_of(best, point, results) if best else None


def share_text(share: Share | None, words: Words) -> str:
    """In percent, with ≤ if the generator's ceiling is higher than measured."""
    text = percent(share.value if share else None, 1)
    return words("at_most", value=text) if share and share.is_at_most else text


def ceiling_text(proof: Proof, point: ProofPoint, results: Results, words: Words) -> str:
    """In Mpps, with ≥ if the generator has done more since."""
    text = mpps(point.ceiling_pps)
    return words("at_least", value=text) if is_short(proof, point, results) else text


def points_of(results: Results) -> list[tuple[Proof, ProofPoint]]:
    """All points of all self-tests."""
    return [(proof, point) for proof in results.proofs for point in proof.points]
