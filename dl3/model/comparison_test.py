"""Ratios of pairs."""

import pytest

from dl3.model.comparison import Comparison
from dl3.model.sample import Sample


def sample(mpps: float, share: float = 1.0) -> Sample:
    return Sample(
        seconds=1.0, core_share=share, received_pps=mpps * 1e6, sent_pps=mpps * 1e6, cycles_per_packet=2600 / mpps
    )


def divides_medians_and_spreads_over_pairs() -> None:
    pairs = [(sample(90), sample(100)), (sample(130), sample(100)), (sample(100), sample(80))]
    row = Comparison.of("row", pairs)
    assert (row.ours, row.peer, row.ratio) == (100.0, 100.0, 1.0)
    assert (row.low, row.middle, row.high, row.n_pairs, row.unit) == (0.9, 1.25, 1.3, 3, "Mpps")
    assert row.ours_cycles == pytest.approx(26.0)
    assert row.peer_cycles == pytest.approx(26.0)


def reports_the_smallest_share_of_the_core() -> None:
    assert Comparison.of("row", [(sample(1, 0.9), sample(1, 0.5)), (sample(1), sample(1))]).core_share == 0.5
