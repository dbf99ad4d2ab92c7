"""Paired measurements of two programs, and their ratio."""

from collections.abc import Sequence
from statistics import median
from typing import Self

from pydantic import BaseModel, ConfigDict

from dl3.model.sample import Sample

Pair = tuple[Sample, Sample]  # ours, the peer's


class Comparison(BaseModel):
    """One row: the medians and their ratio, and the lowest, middle and highest ratio within a pair.

    The two samples of a pair are taken back to back, so `middle` is the more reliable ratio on a machine whose speed
    varies.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    ours: float
    peer: float
    unit: str = "Mpps"
    ratio: float
    low: float
    middle: float
    high: float
    n_pairs: int
    ours_cycles: float
    peer_cycles: float
    core_share: float  # lowest value over all samples
    note: str = ""  # a remark on this row

    @classmethod
    def of(cls, name: str, pairs: Sequence[Pair]) -> Self:
        """Build the row from these pairs; the ratio is that of the medians."""
        ours = median(mine.sent_mpps for mine, _ in pairs)
        peer = median(theirs.sent_mpps for _, theirs in pairs)
        ratios = [mine.sent_pps / theirs.sent_pps for mine, theirs in pairs]
        return cls(
            name=name,
            ours=round(ours, 3),
            peer=round(peer, 3),
            ratio=round(ours / peer, 4),
            low=round(min(ratios), 4),
            middle=round(median(ratios), 4),
            high=round(max(ratios), 4),
            n_pairs=len(pairs),
            ours_cycles=round(median(mine.cycles_per_packet for mine, _ in pairs), 2),
            peer_cycles=round(median(theirs.cycles_per_packet for _, theirs in pairs), 2),
            core_share=round(min(sample.core_share for pair in pairs for sample in pair), 3),
        )
