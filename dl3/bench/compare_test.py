"""Two devices alternate, and their results are combined."""

import pytest

from dl3.bench.compare import Sample, ratio_of, turns
from dl3.model.fault import Fault


def pairs(ours: list[float], peers: list[float]) -> list[tuple[Sample, Sample]]:
    return [(Sample(mine, 64.0), Sample(theirs, 64.0)) for mine, theirs in zip(ours, peers, strict=True)]


def lets_the_other_side_go_first_in_every_second_pair() -> None:
    assert [turns(i) for i in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def takes_the_ratio_of_the_medians_with_an_interval_around_it() -> None:
    ratio, (low, high) = ratio_of(pairs([20.0, 22.0, 21.0, 90.0, 19.0], [10.0, 11.0, 10.5, 10.0, 9.5]), ("a", "b"))
    assert ratio == pytest.approx(2.1)
    assert low < 2.1 < high


def has_no_width_where_all_pairs_agree() -> None:
    assert ratio_of(pairs([20.0] * 6, [10.0] * 6), ("a", "b")) == (2.0, (2.0, 2.0))


@pytest.mark.parametrize(
    ("ours", "peers", "who"),
    [
        ([0.0, 0.0], [1.0, 1.0], "a has no rate to compare: in 2 of 2 pairs"),
        ([1.0, 1.0], [0.0, 0.0], "b has no rate to compare: in 2 of 2 pairs"),
        ([2.0, 2.0, 2.0], [1.0, 0.0, 1.0], "b has no rate to compare: in 1 of 3 pairs"),
        ([2.0, 0.0, 2.0], [1.0, 1.0, 1.0], "a has no rate to compare: in 1 of 3 pairs"),
    ],
)
def compares_nothing_where_a_pair_lacks_a_rate(ours: list[float], peers: list[float], who: str) -> None:
    with pytest.raises(Fault, match=f"^{who}"):
        ratio_of(pairs(ours, peers), ("a", "b"))
