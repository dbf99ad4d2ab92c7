"""A demo ends in time, and a failed frame size does not affect the others."""

from dataclasses import dataclass, field

import pytest

from dl3.bench.demo import PATIENCE_S, Hurried, TimeUp
from dl3.bench.site import ProgressListener
from dl3.model.trial import Trial


@dataclass
class NotingListener(ProgressListener):
    """Records all events."""

    left: list[tuple[str, float]] = field(default_factory=list)

    def on_left(self, frame: str, seconds: float) -> None:
        self.left.append((frame, seconds))


@dataclass
class Hand:
    """A manually advanced clock."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


TRIAL = Trial.model_construct()


def a_range_is_enough_once_time_is_up_and_without_one_the_search_ends() -> None:
    hand = Hand()
    clock = Hurried(ProgressListener(), hand)
    clock.allow(10.0)
    hand.now_s = 10.0
    clock.on_trial(TRIAL)
    assert not clock.is_waiting()
    hand.now_s = 10.5
    clock.on_trial(TRIAL)
    assert clock.is_waiting()
    hand.now_s = 10.0 + PATIENCE_S + 0.5
    with pytest.raises(TimeUp, match="other programs use the two cores"):
        clock.on_trial(TRIAL)


def time_that_one_leaves_over_is_for_the_next_and_what_one_overran_is_ignored() -> None:
    hand = Hand()
    clock = Hurried(ProgressListener(), hand)
    clock.allow(10.0)
    hand.now_s = 4.0
    clock.allow(10.0)
    hand.now_s = 19.0
    assert not clock.is_waiting()
    hand.now_s = 25.0
    clock.allow(10.0)
    hand.now_s = 34.0
    assert not clock.is_waiting()


def promises_no_more_time_than_there_is() -> None:
    listener, hand = NotingListener(), Hand()
    clock = Hurried(listener, hand)
    clock.allow(10)
    hand.now_s = 1.0
    clock.on_left("64", 100.0)
    clock.on_left("64", 1.0)
    assert listener.left == [("64", 9.0), ("64", 1.0)]
