"""Bursts through a simulated buffer."""

import random

import pytest

from dl3.search.back_to_back import Burst, Reach, find_burst
from dl3.search.fake import BROKEN, FakeTrial
from dl3.search.throughput import Undecided


def search(longest: int, reach: Reach) -> tuple[Burst[FakeTrial], list[int]]:
    """A device that loses frames of every burst longer than `longest`."""
    tried: list[int] = []

    def measure(frames: int) -> FakeTrial:
        tried.append(frames)
        return FakeTrial(loss_ratio=max(0, frames - longest) / frames)

    return find_burst(measure, reach), tried


@pytest.mark.parametrize("longest", [1, 2, 63, 64, 65, 100, 1000, 4095, 4096, 99_999])
def finds_the_longest_burst_to_the_frame(longest: int) -> None:
    found, tried = search(longest, Reach(100_000))
    assert (found.frames, found.is_at_least) == (longest, False)
    assert len(tried) == len(set(tried)) <= 30


def is_as_exact_as_asked() -> None:
    found, tried = search(123_456, Reach(10_000_000, share=0.01))
    assert 123_456 * 0.99 <= found.frames <= 123_456
    assert len(tried) < 20


def reports_that_even_the_longest_burst_passed() -> None:
    found, tried = search(10_000, Reach(5000))
    assert (found.frames, found.is_at_least) == (5000, True)
    assert tried[-1] == 5000


def reports_that_not_even_one_frame_passed() -> None:
    found, _ = search(0, Reach(5000))
    assert (found.frames, found.trial, found.is_at_least) == (0, None, False)


def tries_a_burst_again_that_was_invalid() -> None:
    turns = iter(range(999))
    found = find_burst(
        lambda frames: BROKEN if next(turns) % 3 else FakeTrial(loss_ratio=float(frames > 77)), Reach(999)
    )
    assert found.frames == 77


def gives_up_when_a_burst_stays_invalid() -> None:
    with pytest.raises(Undecided, match="a burst of 64 frames was INVALID 4 times, the last because late: it was"):
        find_burst(lambda _: BROKEN, Reach(999))


@pytest.mark.parametrize("seed", range(300))
def never_reports_a_burst_that_lost(seed: int) -> None:
    dice = random.Random(seed)
    lost: list[int] = []
    passed: list[int] = []
    chance = dice.random()

    def measure(frames: int) -> FakeTrial:
        if dice.random() < 0.2:
            return BROKEN
        is_lost = dice.random() < chance
        (lost if is_lost else passed).append(frames)
        return FakeTrial(loss_ratio=float(is_lost))

    try:
        found = find_burst(measure, Reach(dice.randint(1, 10**6), share=dice.choice((0.0, 0.01)), retries=50))
    except Undecided:
        return
    assert found.frames < min(lost, default=10**9)
    assert found.frames == max(passed, default=0)
