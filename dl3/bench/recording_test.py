"""Matching of recorded trials and orders."""

import pytest

from dl3.bench.recording import Recording
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner
from dl3.trial.run_test import ONE


def order(seconds: float = 2.0, frames: int = 0) -> Order:
    """At maximum rate."""
    return Order(ONE, "64", 0.0, seconds, "ceiling", warm_up_s=0.0, frames=frames)


@pytest.mark.parametrize(
    ("made", "asked", "is_the_same"),
    [
        (order(2.0), order(2.0), True),
        (order(2.1), order(2.0), True),  # the generator paused
        (order(0.14), order(0.1), True),
        (order(2.0), order(60.0), False),
        (order(1.0), order(2.0), False),
        (order(0.1), order(0.2), False),
        (order(1.0, frames=9), order(5.0, frames=9), True),
        (order(1.0, frames=8), order(1.0, frames=9), False),
    ],
)
def a_trial_of_another_length_is_another_trial(made: Order, asked: Order, is_the_same: bool) -> None:
    trial = Runner(Site(FakeGenerator()), lambda _: None).run(made)
    assert Recording([trial]).take(asked) == (trial if is_the_same else None)
