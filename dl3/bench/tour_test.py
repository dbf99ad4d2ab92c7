"""A tour ends in time, and what one frame size lacks is no other's loss."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest

from dl3.bench.site import Audience
from dl3.bench.tour import Hurried, TimeUp
from dl3.model.trial import Trial


@dataclass
class Ears(Audience):
    """Keeps what was said."""

    left: list[tuple[str, float]] = field(default_factory=list)

    def heard_left(self, frame: str, seconds: float) -> None:
        self.left.append((frame, seconds))


@dataclass
class Ticking:
    """A clock that goes on by a second whenever somebody looks."""

    ticks: Iterator[int] = field(default_factory=count)

    def __call__(self) -> float:
        return float(next(self.ticks))


TRIAL = Trial.model_construct()


def ends_a_search_after_the_trial_in_which_time_was_up() -> None:
    clock = Hurried(Audience(), Ticking())
    clock.allow(2.5)
    clock.heard_trial(TRIAL)
    clock.heard_trial(TRIAL)
    with pytest.raises(TimeUp, match="other programs use the two cores"):
        clock.heard_trial(TRIAL)
    clock.allow(2.5)
    clock.heard_trial(TRIAL)


def promises_no_more_time_than_there_is() -> None:
    ears = Ears()
    clock = Hurried(ears, Ticking())
    clock.allow(10)
    clock.heard_left("64", 100.0)
    clock.heard_left("64", 1.0)
    assert ears.left == [("64", 9.0), ("64", 1.0)]
