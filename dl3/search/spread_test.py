"""Confidence intervals of small samples: known cases, and their actual coverage."""

import random
from statistics import median

import pytest

from dl3.search.spread import CONFIDENCE, interval, outside, width


def has_no_interval_for_a_single_result() -> None:
    assert interval([]) is None
    assert interval([7.0]) is None
    assert [width([]), width([0.0]), width([9.0, 10.0])] == pytest.approx([0, 0, 0.1])


def takes_students_t_for_few() -> None:
    assert interval([9.0, 10.0, 11.0]) == pytest.approx((10 - 2.484, 10 + 2.484), abs=1e-3)
    assert interval([1.0, 9.0]) == pytest.approx((0, 5 + 12.706 * 4), abs=1e-3)


@pytest.mark.parametrize(("n", "low", "high"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (12, 3, 10), (20, 6, 15)])
def takes_ranks_for_many(n: int, low: int, high: int) -> None:
    results = [float(i) for i in range(1, n + 1)]
    random.Random(1).shuffle(results)
    assert interval(results) == (low, high)
    assert outside(n, low) <= 1 - CONFIDENCE < outside(n, low + 1)


@pytest.mark.parametrize("n", [2, 3, 5, 6, 10])
def contains_the_median_as_often_as_stated(n: int) -> None:
    dice, hits = random.Random(n), 0
    for _ in range(2000):
        found = interval([dice.gauss(10, 1) for _ in range(n)])
        assert found
        hits += found[0] <= 10 <= found[1]
    assert hits / 2000 >= CONFIDENCE - 0.015


def is_not_moved_far_by_one_result_that_is_far_off() -> None:
    results = [10.0] * 9 + [1.0]
    assert interval(results) == (10, 10)
    assert median(results) == 10
