"""Distributions of several streams are merged."""

import pytest

from dl3.control.generator import Jitter, Latency
from dl3.trial.account import jitter_of, merged
from dl3.trial.fake import latency


def part(n: int, ns: float) -> Latency:
    return Latency.model_validate(latency(n, ns))


def takes_one_distribution_as_it_is() -> None:
    assert merged([part(0, 0), part(7, 3.0)]).p99_999 == 3.0
    assert merged([]).n == 0


def finds_percentiles_in_the_histograms_of_several() -> None:
    spread = merged([part(98, 10.0), part(1, 20.0), part(1, 30.0)])
    assert (spread.n, spread.min, spread.max) == (100, 10, 30)
    assert spread.mean == pytest.approx(10.3)
    assert (spread.p50, spread.p90, spread.p99, spread.p99_9, spread.p99_999) == (10, 10, 20, 30, 30)


def takes_the_middle_of_a_bucket_but_never_leaves_the_extremes() -> None:
    one = part(1, 10.0).model_copy(update={"histogram": ((8.0, 16.0, 1),)})
    other = part(3, 100.0).model_copy(update={"histogram": ((96.0, 128.0, 3),)})
    spread = merged([one, other])
    assert spread.p50 == 100.0
    assert spread.min == 10.0


def weighs_jitter_by_its_number() -> None:
    assert jitter_of([Jitter(n=1, mean=4, max=4), Jitter(n=3, mean=8, max=50)]) == (7, 50)
    assert jitter_of([]) == (0, 0)
