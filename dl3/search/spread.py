"""Spread of the results of repeated searches, and their 95 % confidence interval.

From six results on, the interval is that of the median by order statistics, which makes no assumption about the
distribution: ranks k and n + 1 - k, with k as large as the binomial distribution allows. Fewer results cannot give 95 %
this way; Student's t interval of the mean is used then, which assumes a normal distribution.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

CONFIDENCE = 0.95
LEAST_RANKED = 6  # 1 - 2 / 2^n is 96.9 % for 6 and 93.8 % for 5
STUDENT = {
    2: 12.706,
    3: 4.303,
    4: 3.182,
    5: 2.776,
}  # 97.5 % quantile of t with n - 1 degrees of freedom, by n


def outside(n: int, rank: int) -> float:
    """Probability that the median is not between the rank-th smallest and the rank-th largest of n results."""
    return sum(math.comb(n, i) for i in range(rank)) / 2.0 ** (n - 1)


def interval(results: Sequence[float]) -> tuple[float, float] | None:
    """The interval in packets/s, never below 0; None for a single result."""
    n, ranked = len(results), sorted(results)
    if n < 2:
        return None
    if n < LEAST_RANKED:
        middle, half = fmean(ranked), STUDENT[n] * stdev(ranked) / math.sqrt(n)
        return max(0.0, middle - half), middle + half
    rank = max(k for k in range(1, n // 2 + 1) if outside(n, k) <= 1 - CONFIDENCE)
    return ranked[rank - 1], ranked[n - rank]


def width(results: Sequence[float]) -> float:
    """Distance between the lowest and the highest result, relative to the highest; 0 if there are none."""
    return 1 - min(results) / max(results) if results and max(results) > 0 else 0.0
