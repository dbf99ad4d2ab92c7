"""The search with simulated devices: it ends, stays within its bounds, and never returns a rate that lost frames."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.model.trial import Limit
from dl3.search.throughput import (
    FILL,
    Bounds,
    Rung,
    SearchResult,
    SearchSettings,
    Undecided,
    find_throughput,
    most_rates,
    most_trials,
)

LATE = "late: the generator could not keep up"


@dataclass(frozen=True)
class Seen:
    """A trial as seen by the search."""

    offered_pps: float
    received_pps: float
    invalid: tuple[str, ...] = ()
    is_behind: bool = False

    @property
    def loss_ratio(self) -> float:
        """Fraction of the offered frames."""
        return max(0.0, 1 - self.received_pps / self.offered_pps)


Device = Callable[[float], Seen]


def forwarder(threshold: float) -> Device:
    """Forwards up to `threshold` packets/s and drops the rest."""
    return lambda pps: Seen(pps, min(pps, threshold))


def generator(ceiling: float, device: Device) -> Device:
    """A generator that sends no faster than its ceiling."""
    return lambda pps: Seen(ceiling, ceiling, (LATE,), is_behind=True) if pps > ceiling else device(pps)


def recorded(device: Device, seen: list[tuple[float, Seen]]) -> Device:
    """Store each trial with its requested rate."""

    def measure(pps: float) -> Seen:
        seen.append((pps, device(pps)))
        return seen[-1][1]

    return measure


rates = st.floats(1e3, 1.5e8)
settings = st.builds(
    SearchSettings,
    goal_loss_ratio=st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
    resolution=st.floats(1e-4, 0.2),
    repetitions=st.integers(1, 4),
    retries=st.integers(0, 4),
)


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    """Any two rates in ascending order."""
    low, high = sorted((draw(rates), draw(rates)))
    limits: list[Limit] = ["line", "generator", "asked"]
    return Bounds(low, high, draw(st.sampled_from(limits)))


def check(device: Device, within: Bounds, wanted: SearchSettings) -> SearchResult[Seen]:
    """Run a search and check the result against all trials."""
    seen: list[tuple[float, Seen]] = []
    left: list[int] = []
    found = find_throughput(recorded(device, seen), within, wanted, left.append)
    assert left[-1] == 0
    assert len(left) <= most_rates(within, wanted)
    assert found.n_trials == len(seen) <= most_trials(within, wanted)
    assert found.n_invalid == sum(1 for _, trial in seen if trial.invalid)
    assert all(within.low_pps <= asked <= within.high_pps for asked, _ in seen)
    lost = [trial.offered_pps for _, trial in seen if not trial.invalid and trial.loss_ratio > wanted.goal_loss_ratio]
    assert all(found.pps < pps for pps in lost), "it never reports a rate at which a trial lost"
    missed = [pps for pps, trial in seen if not trial.invalid and trial.loss_ratio > wanted.goal_loss_ratio]
    assert found.upper_pps == (max(found.pps, min(missed)) if missed else None), "nothing else is too high"
    if found.best:
        assert not found.best.invalid
        assert found.best.loss_ratio <= wanted.goal_loss_ratio
        assert found.pps == found.best.offered_pps
    else:
        assert found.pps == 0
    return found


@given(rates, bounds(), settings)
def finds_the_rate_above_which_a_device_drops(threshold: float, within: Bounds, wanted: SearchSettings) -> None:
    found = check(forwarder(threshold), within, wanted)
    passes = threshold / (1 - wanted.goal_loss_ratio)
    if passes * (1 + 1e-9) < within.low_pps:
        assert (found.pps, found.limited_by) == (0, "dut")
    elif passes >= within.high_pps * (1 + 1e-9):
        assert (found.pps, found.limited_by, found.n_trials) == (within.high_pps, within.high_is, wanted.repetitions)
    elif within.low_pps * (1 + 1e-9) < passes < within.high_pps * (1 - 1e-9):
        assert passes * (1 - wanted.resolution) * (1 - 1e-9) <= found.pps <= passes * (1 + 1e-9)
        assert found.limited_by == "dut"
        assert found.upper_pps is not None
        assert found.upper_pps > found.pps


@given(rates, rates, bounds(), settings)
def calls_the_ceiling_of_the_generator_by_its_name(
    ceiling: float, threshold: float, within: Bounds, wanted: SearchSettings
) -> None:
    found = check(generator(ceiling, forwarder(threshold)), within, wanted)
    if within.low_pps <= ceiling < min(within.high_pps, threshold) * (1 - wanted.resolution):
        assert found.limited_by == "generator"
        assert ceiling * (1 - wanted.resolution) * (1 - 1e-9) <= found.pps <= ceiling
    if found.limited_by == "generator" and found.best and within.high_is != "generator":
        assert found.ended_pps > ceiling


def hardly_tries_again_once_it_has_had_its_fill_of_a_generator_that_is_behind() -> None:
    def halting(pps: float) -> Seen:
        return Seen(pps * 0.9, pps * 0.9, (LATE,), is_behind=True) if pps > 1e6 else Seen(pps, pps)

    wanted = SearchSettings(retries=10)
    found = check(halting, Bounds(1e4, 2e7), wanted)
    assert found.limited_by == "generator"
    assert 1e6 * (1 - wanted.resolution) <= found.pps <= 1e6
    assert FILL * wanted.retries < found.n_invalid <= FILL * wanted.retries + 20


@given(st.randoms(use_true_random=False), st.floats(0, 1), bounds(), settings)
def never_reports_a_rate_that_lost_however_noisy_the_device(
    dice: random.Random, noise: float, within: Bounds, wanted: SearchSettings
) -> None:
    threshold = dice.uniform(within.low_pps / 2, within.high_pps * 2)

    def noisy(pps: float) -> Seen:
        offered = pps * dice.uniform(0.99, 1.01)
        if dice.random() < noise / 4:
            return Seen(offered, offered / 2, (LATE,), is_behind=True)
        forwarded = min(offered, threshold)
        return Seen(offered, forwarded * (dice.random() if dice.random() < noise else 1))

    check(noisy, within, wanted)


@given(bounds(), settings)
def has_no_result_when_each_trial_is_behind(within: Bounds, wanted: SearchSettings) -> None:
    found = check(lambda pps: Seen(pps / 2, 0, (LATE,), is_behind=True), within, wanted)
    assert (found.pps, found.limited_by, found.best) == (0, "generator", None)
    assert found.n_invalid == found.n_trials


@given(bounds(), settings)
def gives_up_in_a_sentence_when_no_trial_is_valid(within: Bounds, wanted: SearchSettings) -> None:
    seen: list[tuple[float, Seen]] = []
    broken: Device = lambda pps: Seen(pps, pps, ("the link of 'left' was lost",))  # noqa: E731
    with pytest.raises(Undecided, match=r"^no result: at .* were INVALID, .* the link of 'left' was lost$"):
        find_throughput(recorded(broken, seen), within, wanted)
    assert len(seen) == wanted.retries + 1


@given(rates, bounds(), st.integers(1, 3))
def takes_invalid_trials_neither_for_loss_nor_for_a_pass(threshold: float, within: Bounds, retries: int) -> None:
    undisturbed = SearchSettings(retries=retries)
    turns = iter(range(10**6))
    device = forwarder(threshold)

    def sometimes(pps: float) -> Seen:
        turn = next(turns)
        return device(pps) if turn % (retries + 1) == retries else Seen(pps, pps * (turn % 2), ("the TSCs are apart",))

    found = check(sometimes, within, undisturbed)
    assert found.pps == find_throughput(device, within, undisturbed).pps


def asks_few_rates_of_a_device_that_only_drops_what_is_too_much() -> None:
    seen: list[tuple[float, Seen]] = []
    found = find_throughput(recorded(forwarder(7.3e6), seen), Bounds(1e4, 3e7))
    assert [round(asked / 7.3e6, 4) for asked, _ in seen] == [4.1096, 0.9975, 1.0025]
    assert found.pps == pytest.approx(7.3e6 * 0.9975)
    assert found.limited_by == "dut"


def stops_a_rate_at_its_first_loss() -> None:
    seen: list[tuple[float, Seen]] = []
    found = find_throughput(recorded(lambda pps: Seen(pps, 0), seen), Bounds(50, 100), SearchSettings(repetitions=5))
    assert found.pps == 0
    assert len({asked for asked, _ in seen}) == len(seen), "no rate is tried again once it has lost"


def reports_the_slowest_of_the_repetitions() -> None:
    offers = iter([99.0, 97.0, 98.0])

    def uneven(_pps: float) -> Seen:
        offered = next(offers)
        return Seen(offered, offered)

    assert find_throughput(uneven, Bounds(1, 100, "line"), SearchSettings(repetitions=3)).pps == 97.0


def leaves_out_a_pass_that_was_offered_above_a_loss() -> None:
    def jittery(pps: float) -> Seen:
        return Seen(79.0, 50.0) if pps == 100.0 else Seen(pps + 15, pps + 15)

    found = find_throughput(jittery, Bounds(1, 100), SearchSettings(resolution=0.1))
    assert found.pps < 79.0


def tries_no_rate_again_that_is_known() -> None:
    seen: list[tuple[float, Seen]] = []
    device = forwarder(7.3e6)
    known = Rung(3e7, (device(3e7),), "lost")
    found = find_throughput(recorded(device, seen), Bounds(1e4, 3e7), known=[known])
    assert [round(asked / 7.3e6, 4) for asked, _ in seen] == [0.9975, 1.0025]
    assert found == find_throughput(device, Bounds(1e4, 3e7))


def is_content_with_a_range_once_time_is_up_but_not_with_nothing() -> None:
    seen: list[tuple[float, Seen]] = []
    device = forwarder(7.3e6)
    found = find_throughput(
        recorded(device, seen), Bounds(1e4, 3e7), SearchSettings(resolution=1e-4), is_over=lambda: True
    )
    asked = [pps for pps, _ in seen]
    assert asked[-1] == found.pps <= 7.3e6 < found.ended_pps == found.upper_pps == min(asked[:-1])
    assert all(pps > 7.3e6 for pps in asked[:-1]), "it ends with the first rate that passed"
    assert found.limited_by == "dut"
