"""Descending loads, and forwarding rates."""

import random

import pytest

from dl3.search.fake import BROKEN, FakeTrial
from dl3.search.forwarding import find_rates
from dl3.search.frame_loss import find_losses, loads_of
from dl3.search.throughput import Undecided


def device(limit_pps: float, share: float) -> FakeTrial:
    """A device that drops everything above its limit; the maximum load is 100 packets/s."""
    offered = 100 * share
    return FakeTrial(offered, max(0.0, offered - limit_pps) / offered)


def goes_down_in_tenths() -> None:
    assert loads_of(0.1) == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert len(loads_of(0.05)) == 20
    assert loads_of(0.07)[-1] > 0


def ends_after_two_loads_without_loss() -> None:
    found = find_losses(lambda share: device(65, share)).points
    assert [share for share, _ in found] == pytest.approx([1, 0.9, 0.8, 0.7, 0.6, 0.5])
    assert found[0][1].loss_ratio == pytest.approx(0.35)
    assert [trial.loss_ratio for _, trial in found[-2:]] == [0, 0]


def two_loads_without_loss_have_to_follow_each_other() -> None:
    lossless = iter([False, True, False, True, True, False])
    found = find_losses(lambda _: FakeTrial(loss_ratio=0.0 if next(lossless) else 0.5))
    assert len(found.points) == 5


def goes_down_to_the_last_load_where_all_lose() -> None:
    assert len(find_losses(lambda share: device(1, share)).points) == 10


def reports_a_load_that_stays_invalid_separately_and_does_not_count_it() -> None:
    found = find_losses(lambda share: BROKEN if 0.85 < share < 0.95 else device(85, share))
    assert [round(share, 1) for share, _ in found.points] == [1, 0.8, 0.7]
    assert found.invalid_shares == [0.9]
    rates = find_rates(lambda share: BROKEN if share < 0.25 else device(85, share))
    assert len(rates.points) == 8
    assert rates.invalid_shares == pytest.approx([0.2, 0.1])


def measures_the_loads_that_are_given_too_and_none_twice() -> None:
    asked: list[float] = []

    def measure(share: float) -> FakeTrial:
        asked.append(share)
        return device(85, share)

    found = find_losses(measure, given=[0.05, 0.9, 1.2, 0.03])
    assert [share for share, _ in found.points] == pytest.approx([1, 0.9, 0.8, 0.7, 0.05, 0.03])
    assert found.invalid_shares == [1.2]
    assert len(asked) == len({*asked}) == 6


def rates_are_measured_where_all_loads_are_invalid() -> None:
    found = find_losses(lambda share: BROKEN if share > 0.08 else device(85, share), given=[0.05])
    assert [share for share, _ in found.points] == [0.05]


def gives_up_when_all_stay_invalid() -> None:
    with pytest.raises(Undecided):
        find_losses(lambda _: BROKEN)
    with pytest.raises(Undecided):
        find_rates(lambda _: BROKEN)


@pytest.mark.parametrize("seed", range(100))
def reports_valid_trials_alone(seed: int) -> None:
    dice = random.Random(seed)
    try:
        found = find_losses(
            lambda share: BROKEN if dice.random() < 0.5 else device(50, share), dice.choice((0.1, 0.02))
        )
    except Undecided:
        return
    assert all(not trial.invalid for _, trial in found.points)
    shares = [share for share, _ in found.points]
    assert shares == sorted(shares, reverse=True)
    assert not {*shares} & {*found.invalid_shares}


def reports_the_rates_of_a_device_that_sags_under_load() -> None:
    forwards = {1.0: 40.0, 0.9: 60.0, 0.8: 70.0}
    rates = find_rates(lambda share: device(forwards.get(round(share, 1), 75.0), share))
    assert len(rates.points) == 10
    assert (rates.at_most_offered.offered_pps, rates.most.offered_pps) == pytest.approx((100, 80))
