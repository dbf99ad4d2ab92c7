"""The bound on what stalls can have cost a trial, and what follows from it: no clock is involved."""

import math
from dataclasses import replace
from typing import Any

import pytest

from dl3.control.generator import Pauses, Results
from dl3.model.evidence import Event, Stalled
from dl3.trial.fake import START_NS, Change, FakeForwarder, FakeGenerator
from dl3.trial.order import Order, Site, Surplus
from dl3.trial.run import Runner
from dl3.trial.run_test import ONE
from dl3.trial.seen_test import pauses
from dl3.trial.stalls import (
    LEAST_US,
    MOST_SHARE,
    Counts,
    bridged_us,
    held_frames,
    is_open,
    lengths_us,
    most_error,
    most_frames,
    stall_sentences,
    stalled_of,
    taken_by,
)

MS = 1_000_000
PACED = Counts(asked_pps=1e6, seconds=1.0, sent=1_000_000, received=1_000_000)
FLOOD = replace(PACED, asked_pps=0.0)


def stalls(n: int, us: float, every_ms: int = 200) -> dict[str, Any]:
    """Stalls of dl3gen's worker 0 on core 3 of equal length, the first one 100 ms after the start."""
    return pauses(*((START_NS + (100 + every_ms * i) * MS, us) for i in range(n)))


def trial(own: dict[str, Any], spoil: Change | None = None, dut: bool = False, **order: Any) -> Any:
    """A trial of one second whose counters are edited."""
    generator = FakeGenerator(device_pps=9e6, gaps=own, spoil=spoil or (lambda _: None))
    site = Site(generator, FakeForwarder(generator=generator) if dut else None)
    return Runner(site, lambda _: None).run(Order(ONE, "64", **{"pps": 1e6, "seconds": 1.0, "warm_up_s": 0, **order}))


def losing(lost: int, late_polls: int = 0) -> Change:
    """Frames that did not come back, and polls that found the sink's ring full."""

    def spoil(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        stream.update(received=stream["sent"] - lost, lost=lost, lost_by_gaps=lost)
        results["ports"][1]["late_polls"] = late_polls

    return spoil


def a_stall_costs_at_most_its_length_times_the_rate() -> None:
    assert most_frames(10_000, 1e6) == 10_000
    assert most_frames(0.1, 1e6) == 1, "a part of a frame is a frame"
    assert most_frames(10_000, 1e6, missing=70) == 70
    assert most_frames(0.0, 1e6) == 0


@pytest.mark.parametrize(
    ("counts", "us", "wanted"),
    [
        (PACED, 0.0, 1e6),
        (replace(PACED, received=950_000), 50_000.0, 1e6),  # everything outside of the stalls came back
        (replace(PACED, received=475_000), 50_000.0, 5e5),  # an overloaded device could not have sent more meanwhile
        (FLOOD, 500_000.0, 2e6),
        (replace(FLOOD, received=0), 500_000.0, 0.0),
        (replace(PACED, received=9_000), 990_000.0, 1e6),  # a sink that almost never polled says nothing of the device
        (replace(FLOOD, received=9_000), 990_000.0, 5e6),
    ],
)
def the_rate_is_that_of_the_frames_that_came_back_outside_of_stalls(counts: Counts, us: float, wanted: float) -> None:
    assert counts.rate_pps(us) == pytest.approx(wanted)


def rings_bridge_short_stalls() -> None:
    assert bridged_us(0, 1e6, 1) == LEAST_US
    assert bridged_us(16_384, 8.192e6, 1) == pytest.approx(1000)
    assert bridged_us(16_384, 8.192e6, 2) == pytest.approx(2000), "each port has a ring and a part of the rate"
    assert bridged_us(64, 1e7, 1) == LEAST_US


def only_the_part_of_a_stall_within_the_trial_counts() -> None:
    gaps = pauses((START_NS + 4 * MS, 6_000.0), (START_NS + 50 * MS, 2_000.0), (START_NS + 103 * MS, 9_000.0))
    found = lengths_us(Pauses.model_validate(gaps), START_NS, START_NS + 100 * MS)
    assert found == [4_000.0, 2_000.0, 6_000.0]


def known_stalls_stand_for_forgotten_ones() -> None:
    gaps = pauses((START_NS + 75 * MS, 2_000.0), (START_NS + 90 * MS, 1_000.0), forgotten=7)
    known = Pauses.model_validate(gaps)
    assert sum(lengths_us(known, START_NS, START_NS + 100 * MS)) == 4 * 3_000.0
    assert sum(lengths_us(known.model_copy(update={"forgotten": 0}), START_NS, START_NS + 100 * MS)) == 3_000.0


def says_who_had_the_core_only_if_it_had_most_of_it() -> None:
    known = Pauses.model_validate(pauses((START_NS + 20 * MS, 10_000.0), (START_NS + 60 * MS, 10_000.0))).gaps

    def event(at_ms: int, ms: int, who: str, core: int = 3) -> Event:
        return Event(what="switch", at_ns=START_NS + at_ms * MS, us=ms * 1e3, core=core, who=who)

    assert taken_by(known, [event(20, 9, "make"), event(60, 4, "make"), event(60, 3, "cron")]) == "make"
    assert taken_by(known, [event(20, 9, "make")]) == ""
    assert taken_by(known, [event(20, 10, "make", core=1), event(60, 10, "make", core=1)]) == ""


@pytest.mark.parametrize(
    ("lost", "frames", "goals", "wanted"),
    [
        (0, 50_000, (0.0,), False),  # no loss in spite of stalls is no loss
        (40_000, 40_000, (0.0,), True),  # stalls alone may have lost them
        (60_000, 50_000, (0.0,), False),  # at least 10,000 are lost for another reason
        (60_000, 50_000, (0.0, 0.05), True),  # the loss is between 1 and 6 %
        (40_000, 40_000, (0.05,), False),  # less than the goal in any case
        (300_000, 50_000, (0.0, 0.005), False),  # an overload remains an overload
    ],
)
def a_goal_is_open_if_stalls_decide_it(lost: int, frames: int, goals: tuple[float, ...], wanted: bool) -> None:
    counts = replace(PACED, received=PACED.sent - lost)
    assert is_open(Stalled(n=5, us=5e4, frames=frames), counts, goals) is wanted
    sentences = list(stall_sentences(Stalled(n=5, us=5e4, frames=frames), counts, goals, math.inf))
    assert [sentence.endswith("so the loss of the device is not known") for sentence in sentences] == [True] * wanted


@pytest.mark.parametrize("counts", [PACED, FLOOD])
def a_measured_loss_or_rate_counts_up_to_a_share(counts: Counts) -> None:
    within = int(counts.received * MOST_SHARE)
    assert not list(stall_sentences(Stalled(n=1, us=1e4, longest_us=1e4, frames=within), counts, (), MOST_SHARE))
    (sentence,) = stall_sentences(Stalled(n=1, us=1e4, longest_us=1e4, frames=within + 1), counts, (), MOST_SHARE)
    assert sentence == (
        "stalls: the generator stalled 1 times for up to 10,000 us; they can have cost 10,001 frames (1.00%), more than 1%"
    )


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ({}, MOST_SHARE),
        ({"goals": (0.0,), "test": "frame loss"}, MOST_SHARE),
        ({"goals": (0.0,), "test": "ceiling"}, MOST_SHARE),
        ({"goals": (0.0,), "test": "throughput"}, math.inf),
        ({"test": "reset"}, 0.0),
        ({"test": "recovery", "surplus": Surplus(1e6, 1.0)}, 0.0),
    ],
)
def what_is_measured_decides_how_much_stalls_may_cost(order: dict[str, Any], wanted: float) -> None:
    assert most_error(Order(ONE, "64", 1e6, 1.0, **order)) == wanted


@pytest.mark.parametrize("dut", [False, True])
@pytest.mark.parametrize(
    ("n", "us", "lost", "error", "is_valid"),
    [
        (1, 9_000.0, 300_000, 0.009, True),  # an overloaded device and a stall of 0.9 % of the time
        (5, 10_000.0, 300_000, 0.05 / 0.95, False),
        (1, 9_000.0, 5_000, 0.005, True),  # no more than what is missing
        (0, 0.0, 300_000, 0.0, True),
    ],
)
def devices_with_and_without_counters_are_judged_alike(
    dut: bool, n: int, us: float, lost: int, error: float, is_valid: bool
) -> None:
    made = trial(stalls(n, us), losing(lost, late_polls=n), dut)
    assert (not made.invalid) is is_valid
    assert made.is_stalled is not is_valid
    assert made.error_share == pytest.approx(error, rel=0.01)
    assert made.n_stalls == n


def a_stall_that_filled_no_ring_cost_nothing() -> None:
    made = trial(stalls(5, 10_000.0), losing(300_000))
    assert (made.invalid, made.error_share, made.n_stalls) == ((), 0.0, 5)


def a_flood_is_short_of_the_frames_that_were_not_offered() -> None:
    made = trial(stalls(5, 10_000.0), pps=0.0)
    assert made.is_stalled
    assert made.error_share == pytest.approx(0.05 / 0.95, rel=0.001)
    assert made.invalid[0].startswith("stalls: the generator stalled 5 times for up to 10,000 us; they can have cost ")
    assert trial(stalls(1, 5_000.0), pps=0.0).invalid == ()


@pytest.mark.parametrize(
    ("late", "is_valid", "is_stalled"), [(900, True, False), (9_000, False, True), (60_000, False, False)]
)
def a_rate_must_be_true_but_a_shorter_trial_may_reach_it(late: int, is_valid: bool, is_stalled: bool) -> None:
    def spoil(results: dict[str, Any]) -> None:
        sent = 1_000_000 - late
        counts = {"sent": sent, "received": sent, "late": late, "offered_pps": float(sent)}
        results["streams"][0].update(counts)

    made = trial(stalls(5, 10_000.0), spoil, goals=(0.0,))
    assert ((not made.invalid), made.is_stalled) == (is_valid, is_stalled)


@pytest.mark.parametrize(("n", "is_stalled"), [(1, True), (0, False)])
def a_rate_that_a_stall_at_the_end_made_too_low_is_not_a_result(n: int, is_stalled: bool) -> None:
    made = trial(stalls(n, 5_000.0), lambda results: results["streams"][0].update(offered_pps=996_000.0), goals=(0.0,))
    assert made.invalid == ("pacing: stream 'stream0' was offered 0.40% below its rate",)
    assert made.is_stalled is is_stalled


@pytest.mark.parametrize(("us", "is_stalled"), [(990_000.0, True), (100_000.0, False)])
def a_generator_that_sent_nothing_was_stalled_if_a_stall_covers_the_trial(us: float, is_stalled: bool) -> None:
    nothing = {"sent": 0, "received": 0, "lost": 0, "lost_by_gaps": 0, "offered_pps": 0.0}
    own = pauses((START_NS + 995 * MS, us))
    made = trial(own, lambda results: results["streams"][0].update(nothing))
    assert made.invalid == ("late: the generator sent nothing",)
    assert made.is_stalled is is_stalled


def a_generator_beyond_its_ceiling_is_not_stalled() -> None:
    def spoil(results: dict[str, Any]) -> None:
        counts = {"sent": 700_000, "received": 700_000, "late": 300_000, "offered_pps": 7e5}
        results["streams"][0].update(counts)

    made = trial(stalls(5, 10_000.0), spoil, goals=(0.0,))
    assert (made.is_behind, made.is_stalled) == (True, False)


def without_times_the_polls_that_found_the_ring_full_bound_the_cost() -> None:
    results = Results.model_validate(FakeGenerator().newest | {"seconds": 1.0})
    assert stalled_of(results, None, {}, ()) == Stalled()
    made = trial(
        pauses(), lambda results: losing(100_000, 2)(results) or results["ports"][1].update(longest_gap_us=4e3)
    )
    assert made.stalled.us == 8_000.0
    assert made.stalled.frames == pytest.approx(8_000 * 0.9 / 0.992, rel=0.01)


@pytest.mark.parametrize(
    ("counts", "ns", "wanted"),
    [
        (replace(FLOOD, seconds=0.05, received=366_384), 2.2e6, 15_441),  # what was left in the rings of an overload
        (replace(PACED, seconds=0.05, received=350_000), 2e5, 0),  # the usual delay
        (replace(PACED, seconds=0.05, received=350_000), 2e6, 13_462),  # an overload of 4 % that the rings hid
    ],
)
def a_short_trial_leaves_no_overload_in_the_rings(counts: Counts, ns: float, wanted: int) -> None:
    assert held_frames(counts, ns) == wanted


def only_a_shortened_trial_counts_what_it_left_behind() -> None:
    def delayed(results: dict[str, Any]) -> None:
        results["streams"][0]["latency_from_sending"].update(p90=30e6)

    assert trial(pauses(), delayed).loss_ratio == 0.0
    made = trial(pauses(), delayed, ordered_s=10.0)
    assert (made.ordered_s, made.loss_ratio) == (10.0, pytest.approx(0.03 / 1.03, rel=0.001))
