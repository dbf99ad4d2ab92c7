"""MLRsearch with simulated devices, both steady and noisy, also compared with two binary searches."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dl3.model.trial import Limit
from dl3.search import mlr
from dl3.search.mlr import Goals, find_throughputs
from dl3.search.throughput import FILL, Bounds, SearchResult, SearchSettings, Undecided, find_throughput
from dl3.search.throughput_test import LATE, Device, Seen, forwarder, generator

OVERHEAD_S = 0.6  # per trial: warm-up, drain, reading of counters
HAIR = 1e-9  # tolerance for rounding


@dataclass
class Desk:
    """Runs trials on a device and keeps them."""

    device: Device
    seen: list[tuple[float, float, Seen]] = field(default_factory=list)

    def measure(self, pps: float, seconds: float) -> Seen:
        """Run one trial."""
        self.seen.append((pps, seconds, self.device(pps)))
        return self.seen[-1][2]

    @property
    def trial_s(self) -> float:
        """Total trial time."""
        return sum(seconds for _, seconds, _ in self.seen)

    @property
    def wall_s(self) -> float:
        """Total time including the overhead of the trials."""
        return self.trial_s + OVERHEAD_S * len(self.seen)


ratios = st.sampled_from([(0.0,), (0.0, 0.005), (0.005, 0.0), (1e-3,), (0.0, 1e-4, 0.1)])
goals = st.builds(
    Goals,
    loss_ratios=ratios,
    resolution=st.floats(1e-4, 0.1),
    seconds=st.sampled_from([0.05, 0.2, 2.0, 60.0]),
    trials=st.integers(1, 3),
    retries=st.integers(0, 3),
)
limits: list[Limit] = ["line", "generator", "asked"]


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
    """Two rates far enough apart for a search."""
    high = draw(st.floats(1e4, 1.5e8))
    return Bounds(high * draw(st.floats(1e-4, 0.5)), high, draw(st.sampled_from(limits)))


def check(device: Device, within: Bounds, wanted: Goals) -> tuple[SearchResult[Seen], ...]:
    """Run a search and check every result against all trials."""
    desk, left = Desk(device), list[float]()
    found = find_throughputs(desk.measure, within, wanted, left.append)
    assert left[-1] == 0
    assert all(within.low_pps <= pps <= within.high_pps for pps, _, _ in desk.seen)
    assert all(wanted.first_s <= seconds <= wanted.seconds for _, seconds, _ in desk.seen)
    for ratio, one in zip(wanted.loss_ratios, found, strict=True):
        assert one.n_trials == len(desk.seen)
        assert one.n_invalid == sum(1 for _, _, trial in desk.seen if trial.invalid)
        hold(desk, ratio, one, wanted)
    return found


def hold(desk: Desk, ratio: float, one: SearchResult[Seen], wanted: Goals) -> None:
    """The result is below all rates that lost frames, and was tried as often and as long as required."""
    _hold_upper(desk, ratio, one, wanted)
    if not one.best:
        assert one.pps == 0
        return
    assert (one.pps, one.best.invalid) == (one.best.offered_pps, ())
    assert one.best.loss_ratio <= ratio
    assert one.conditional_pps is not None
    assert one.pps * (1 - ratio) * (1 - HAIR) <= one.conditional_pps <= one.pps
    finals = [seen for asked, s, seen in desk.seen if s == wanted.seconds and not seen.invalid and seen.offered_pps]
    assert one.best in finals
    if not wanted.exceed_ratio:
        lossy = [seen.offered_pps for *_, seen in desk.seen if not seen.invalid and seen.loss_ratio > ratio]
        assert all(one.pps < pps for pps in lossy), "it never reports a rate at which a trial lost"


def _hold_upper(desk: Desk, ratio: float, one: SearchResult[Seen], wanted: Goals) -> None:
    """A rate is too high for the device only if a valid trial there missed the goal."""
    missed = [asked for asked, _, seen in desk.seen if not seen.invalid and seen.loss_ratio > ratio]
    assert one.ended_pps >= one.pps
    if one.upper_pps is None:
        assert not missed or wanted.exceed_ratio
    elif wanted.exceed_ratio:
        assert one.upper_pps in missed
    else:
        assert one.upper_pps == max(one.pps, min(missed))


@given(st.floats(1e3, 2e8), bounds(), goals)
def finds_the_rates_above_which_a_device_drops_too_much(limit: float, within: Bounds, wanted: Goals) -> None:
    for ratio, found in zip(wanted.loss_ratios, check(forwarder(limit), within, wanted), strict=True):
        passes = limit / (1 - ratio)
        if passes * (1 + HAIR) < within.low_pps:
            assert (found.pps, found.limited_by) == (0, "dut")
        elif passes >= within.high_pps * (1 + HAIR):
            assert (found.pps, found.limited_by) == (within.high_pps, within.high_is)
        elif within.low_pps * (1 + HAIR) < passes < within.high_pps * (1 - HAIR):
            assert passes * (1 - wanted.resolution) * (1 - HAIR) <= found.pps <= passes * (1 + HAIR)
            assert found.upper_pps is not None
            assert found.upper_pps - found.pps <= wanted.resolution * found.upper_pps * (1 + HAIR)
            assert found.limited_by == "dut"


@given(st.floats(1e3, 2e8), bounds(), goals, st.randoms(use_true_random=False), st.floats(0, 0.3))
def never_reports_a_rate_that_lost_however_noisy_the_device(
    limit: float, within: Bounds, wanted: Goals, dice: random.Random, noise: float
) -> None:
    def noisy(pps: float) -> Seen:
        offered = pps * dice.uniform(0.999, 1.001)
        if dice.random() < noise / 4:
            return Seen(offered, offered / 2, (LATE,), is_behind=True)
        forwarded = min(offered, limit)
        return Seen(offered, forwarded * (dice.random() if dice.random() < noise else 1))

    with suppress(Undecided):
        check(noisy, within, wanted)


def calls_no_rate_too_high_that_lies_below_the_result() -> None:
    def hasty(pps: float) -> Seen:
        offered = pps * 1.0009  # within the pacing tolerance
        return Seen(offered, offered, (LATE,), is_behind=True) if pps > 9990 else Seen(offered, offered)

    within, wanted = Bounds(5000, 10_000, "line"), Goals(resolution=1e-4, seconds=0.05, retries=0)
    (one,) = find_throughputs(lambda pps, _: hasty(pps), within, wanted)
    assert (one.upper_pps, one.ended_pps >= one.pps > 9990) == (None, True)
    other = find_throughput(hasty, within, SearchSettings(resolution=1e-4, retries=0))
    assert (other.upper_pps, other.ended_pps >= other.pps > 9990) == (None, True)


def takes_no_rate_for_too_high_at_which_the_generator_was_behind() -> None:
    def halting(pps: float) -> Seen:
        return Seen(pps * 0.9, pps * 0.9, (LATE,), is_behind=True) if 1e6 < pps < 8e6 else forwarder(7.3e6)(pps)

    desk, within = Desk(halting), Bounds(1e4, 2e7)
    (one,) = find_throughputs(desk.measure, within, Goals(retries=1))
    other = find_throughput(halting, within, SearchSettings(retries=1))
    for found in (one, other):
        assert found.pps <= 1e6 < found.ended_pps < 1.01e6, "where the search ended"
        assert found.limited_by == "generator"
        assert found.upper_pps is not None
        assert found.upper_pps >= 8e6, "what is known of the device"


def calls_nothing_too_high_where_no_trial_lost() -> None:
    (slow,) = find_throughputs(Desk(generator(1e6, forwarder(7.3e6))).measure, Bounds(1e4, 2e7))
    assert (slow.upper_pps, slow.limited_by) == (None, "generator")
    (asked,) = find_throughputs(Desk(forwarder(7.3e6)).measure, Bounds(1e4, 1e6))
    assert (asked.pps, asked.upper_pps, asked.limited_by) == (1e6, None, "asked")


@given(st.floats(1e3, 2e8), bounds(), st.floats(1e-3, 0.1), st.randoms(use_true_random=False))
def reports_no_less_where_more_may_be_lost(
    limit: float, within: Bounds, resolution: float, dice: random.Random
) -> None:
    device: Device = lambda pps: Seen(pps, min(pps, limit * dice.uniform(1 - resolution, 1 + resolution)))  # noqa: E731
    strict, loose = check(device, within, Goals((0.0, 0.005), resolution=resolution))
    assert loose.pps >= strict.pps * (1 - HAIR)


@given(st.floats(1e3, 2e8), st.floats(1e3, 2e8), bounds(), goals)
def calls_the_ceiling_of_the_generator_by_its_name(ceiling: float, limit: float, within: Bounds, wanted: Goals) -> None:
    found = check(generator(ceiling, forwarder(limit)), within, wanted)
    for one in found:
        if within.low_pps < ceiling * (1 - HAIR) < min(within.high_pps, limit) * (1 - wanted.resolution):
            assert one.limited_by == "generator"
            assert ceiling * (1 - wanted.resolution) * (1 - HAIR) <= one.pps <= ceiling


@given(st.floats(1e3, 2e8), bounds(), goals, st.integers(0, 99), st.floats(0, 0.02))
def repeats_the_same_rates_for_the_same_trials(
    limit: float, within: Bounds, wanted: Goals, seed: int, spread: float
) -> None:
    dice = random.Random(seed)
    device: Device = lambda pps: Seen(pps, min(pps, limit * dice.uniform(1 - spread, 1 + spread)))  # noqa: E731
    first, second = Desk(device), Desk(lambda _: next(replayed))
    replayed = (seen for *_, seen in first.seen)
    try:
        found = find_throughputs(first.measure, within, wanted)
    except Undecided:
        return
    assert find_throughputs(second.measure, within, wanted) == found
    assert second.seen == first.seen


def unlucky(limit: float, dice: random.Random) -> Device:
    """Loses frames in one of twenty trials at any rate."""
    return lambda pps: Seen(pps, min(pps, limit) * (0.999 if dice.random() < 0.05 else 1))


@pytest.mark.parametrize(("exceed", "trials"), [(0.5, 3), (0.25, 5), (0.1, 11)])
def tolerates_with_an_exceed_ratio_what_happens_now_and_then(exceed: float, trials: int) -> None:
    wanted, within = Goals(exceed_ratio=exceed), Bounds(1e4, 2e7)
    assert wanted.n_trials == trials
    misses = []
    for seed in range(20):
        desk = Desk(unlucky(7.3e6, random.Random(seed)))
        (found,) = find_throughputs(desk.measure, within, wanted)
        hold(desk, 0.0, found, wanted)
        assert found.best
        tries = [seen for _, s, seen in desk.seen if s == wanted.seconds and seen.offered_pps == found.pps]
        assert sum(seen.loss_ratio > 0 for seen in tries) <= exceed * wanted.n_trials
        misses.append(7.3e6 - found.pps)
    assert sorted(misses)[10] <= 0.005 * 7.3e6, "one trial in twenty that loses moves the result of few searches"


def reports_the_conditional_throughput_of_what_came_back() -> None:
    strict, loose = find_throughputs(Desk(forwarder(7.3e6)).measure, Bounds(1e4, 2e7), Goals((0.0, 0.005)))
    assert strict.conditional_pps == strict.pps <= 7.3e6 < loose.pps
    assert loose.conditional_pps == pytest.approx(7.3e6)


def makes_invalid_trials_again_and_never_shows_them() -> None:
    turns = iter(range(10**6))

    def sometimes(pps: float) -> Seen:
        return forwarder(7.3e6)(pps) if next(turns) % 3 == 2 else Seen(pps, 0, ("the TSCs are apart",))

    (undisturbed,) = find_throughputs(Desk(forwarder(7.3e6)).measure, Bounds(1e4, 2e7), Goals(retries=2))
    (found,) = find_throughputs(Desk(sometimes).measure, Bounds(1e4, 2e7), Goals(retries=2))
    assert (found.pps, found.upper_pps, found.n_invalid) == (
        undisturbed.pps,
        undisturbed.upper_pps,
        2 * undisturbed.n_trials,
    )


def hardly_tries_again_once_it_has_had_its_fill_of_a_generator_that_is_behind() -> None:
    def halting(pps: float) -> Seen:
        return Seen(pps * 0.9, pps * 0.9, (LATE,), is_behind=True) if pps > 1e6 else Seen(pps, pps)

    wanted = Goals(retries=10)
    (found,) = find_throughputs(Desk(halting).measure, Bounds(1e4, 2e7), wanted)
    assert found.limited_by == "generator"
    assert 1e6 * (1 - wanted.resolution) <= found.pps <= 1e6
    assert FILL * wanted.retries < found.n_invalid <= FILL * wanted.retries + 20


def gives_up_in_a_sentence_when_no_trial_is_valid() -> None:
    desk = Desk(lambda pps: Seen(pps, pps, ("the link of 'left' was lost",)))
    with pytest.raises(Undecided, match=r"^no result: at .* 4 trials were INVALID, .* the link of 'left' was lost$"):
        find_throughputs(desk.measure, Bounds(1e4, 2e7))


def ends_a_search_that_never_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlr, "MOST_FINALS", 0.5)
    wanted, dice = Goals(exceed_ratio=0.5, resolution=1e-4), random.Random(7)
    desk = Desk(lambda pps: Seen(pps, pps * (1 - 0.3 * dice.random() ** 8)))
    with pytest.raises(Undecided, match=r"^no result: .* did not settle it, .* \(exceed ratio\)$"):
        find_throughputs(desk.measure, Bounds(1e4, 2e7), wanted)
    assert wanted.longest_s < desk.trial_s <= wanted.longest_s + wanted.seconds


def takes_a_trial_from_before_for_the_first_one() -> None:
    known = Seen(2e7, 7.3e6)
    desk = Desk(forwarder(7.3e6))
    (found,) = find_throughputs(desk.measure, Bounds(1e4, 2e7), known=known)
    assert found == find_throughputs(Desk(forwarder(7.3e6)).measure, Bounds(1e4, 2e7))[0]
    assert found.n_trials == len(desk.seen) + 1


def steady(limit: float) -> Device:
    """Forwards up to its limit, and at its limit when overloaded."""
    return forwarder(limit)


def collapsing(limit: float) -> Device:
    """Forwards less the more it is overloaded."""
    return lambda pps: Seen(pps, pps if pps <= limit else max(0.1 * limit, limit - 0.3 * (pps - limit)))


def bending(limit: float) -> Device:
    """Loses very little just above its limit."""

    def passed(pps: float) -> Seen:
        excess = max(0.0, pps / limit - 1)
        return Seen(pps, pps * (1 - min(0.9, 0.05 * excess + excess**2)))

    return passed


@pytest.mark.parametrize("seconds", [2.0, 60.0])
@pytest.mark.parametrize("kind", [steady, collapsing, bending])
def takes_less_than_half_the_time_of_two_binary_searches(
    kind: Callable[[float], Device], seconds: float, record_property: Callable[[str, object], None]
) -> None:
    ours, theirs, dice = Desk(kind(1)), Desk(kind(1)), random.Random(9971)
    for _ in range(50):
        limit, within, within_it = dice.uniform(1e6, 19e6), Bounds(2e4, 2e7, "generator"), (0.0, 0.005)
        ours.device = theirs.device = kind(limit)
        found = find_throughputs(ours.measure, within, Goals(within_it, seconds=seconds))
        for ratio, one in zip(within_it, found, strict=True):
            measure = lambda pps: theirs.measure(pps, seconds)  # noqa: E731
            other = find_throughput(measure, within, SearchSettings(goal_loss_ratio=ratio))
            assert one.ended_pps - one.pps <= 0.005 * one.ended_pps
            assert one.pps == pytest.approx(other.pps, rel=0.005)
    shares = ours.trial_s / theirs.trial_s, ours.wall_s / theirs.wall_s
    record_property("share of the binary searches' trial time, and with overheads", shares)
    print(f"{kind.__name__}, {seconds:.0f} s: {shares[0]:.3f} of the trial time, {shares[1]:.3f} with overheads")
    assert max(shares) < 0.5
