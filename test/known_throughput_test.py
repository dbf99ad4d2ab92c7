"""The searched and the measured: a wire that is as fast and as slow as it is told."""

from pathlib import Path

import pytest
from harness.answers import THERE, Bench, stream
from harness.house import BUILD

from dl3.control.client import Client
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.search.mlr import Goals, find_throughputs
from dl3.search.throughput import Bounds, Terms, find_throughput
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

SECONDS = 0.1  # short, so that many a trial is over before somebody else wants the core
DEPTH = 80  # frames that the limit lets through at once: those that follow a pause, and some; 0.16 % of a short trial
LOSS = 0.005
DELAY_TOLERANCE_NS = 1_000 if BUILD.name == "build" else 20_000  # an instrumented lane takes longer for a round
JITTER_TOLERANCE_NS = DELAY_TOLERANCE_NS / 5
ATTEMPTS = 5  # the median of one run may be spoilt by whoever shares the core


def _runner(bench: Bench) -> Runner:
    return Runner(Site(Client(bench.dl3gen.socket), dut_name="test device"))


def _order(pps: float, seconds: float = SECONDS) -> Order:
    return Order((Stream.model_validate(stream()),), "64", pps, seconds, "throughput", warm_up_s=0.0)


@pytest.mark.parametrize(("limit_pps", "refuses"), [(500_000, 0), (777_777, 0), (600_000, 1)])
def the_search_finds_the_limit_of_the_wire(tmp_path: Path, limit_pps: int, refuses: int) -> None:
    channel = f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} refuses={refuses} ring=16384 slot=128"
    bounds, terms = Bounds(10_000, 1_000_000, "asked"), Terms(resolution=0.002, retries=20)
    with Bench(tmp_path, [channel], measures=True) as bench:
        runner = _runner(bench)
        answer = find_throughput(lambda pps: runner.run(_order(pps)), bounds, terms)
    assert answer.pps == pytest.approx(limit_pps, rel=0.005)
    assert answer.limited_by == "dut"
    assert answer.upper_pps >= answer.pps
    assert answer.best is not None
    assert answer.best.account.lost == 0


@pytest.mark.parametrize("limit_pps", [500_000, 777_777])
def the_search_of_rfc_9971_finds_both_limits_of_the_wire(tmp_path: Path, limit_pps: int) -> None:
    # What loses nothing up to R lets R through above it: of 1.005 R it loses half a percent.
    goals = Goals((0.0, LOSS), resolution=0.002, seconds=3 * SECONDS, retries=20)
    with Bench(
        tmp_path, [f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} ring=16384 slot=128"], measures=True
    ) as bench:
        runner = _runner(bench)
        measure = lambda pps, seconds: runner.run(_order(pps, seconds))  # noqa: E731
        strict, loose = find_throughputs(measure, Bounds(10_000, 1_000_000, "asked"), goals)
    assert strict.pps == pytest.approx(limit_pps, rel=0.005)
    assert loose.pps == pytest.approx(limit_pps / (1 - LOSS), rel=0.005)
    assert (strict.limited_by, loose.limited_by) == ("dut", "dut")
    assert strict.pps < strict.upper_pps <= loose.upper_pps
    assert strict.best is not None
    assert loose.best is not None
    assert strict.best.account.lost == 0 < loose.best.account.lost <= LOSS * loose.best.account.sent
    assert loose.conditional_pps == pytest.approx(limit_pps, rel=0.005)


def a_wire_without_a_limit_is_limited_by_what_was_asked(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} ring=16384 slot=128"], measures=True) as bench:
        runner = _runner(bench)
        answer = find_throughput(lambda pps: runner.run(_order(pps)), Bounds(1_000, 50_000), Terms(retries=20))
    assert answer.limited_by == "asked"
    assert answer.pps == pytest.approx(50_000, rel=0.001)


def _valid_trial(bench: Bench, pps: float) -> Trial:
    """A trial that says something; INVALID ones are made again."""
    for _ in range(20):
        bench.forget()
        trial = _runner(bench).run(_order(pps))
        if not trial.invalid:
            return trial
    raise AssertionError(f"20 trials were INVALID, the last because {trial.invalid}")


def a_loss_has_its_place_in_the_account(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} limit_pps=50000 refuses=1 slot=128"], measures=True) as bench:
        trial = _valid_trial(bench, 100_000)
        assert trial.account.lost_by_place == {"dut rx ring full": bench.truths()[0].refused}
    with Bench(tmp_path, [f"{THERE} drop_every=100 corrupt_every=100 corrupt_at=50 slot=128"], measures=True) as bench:
        trial = _valid_trial(bench, 100_000)
        truth = bench.truths()[0]
        assert trial.account.lost_by_place == {"corrupted": truth.corrupted, "unknown": truth.dropped}
        assert trial.account.lost == truth.corrupted + truth.dropped


def _median_error_ns(bench: Bench, delay_ns: int) -> float:
    told, _ = bench.run_one(stream(rate="50 kpps"), seconds=0.2)
    assert told.received == told.sent == told.latency.n == told.latency_from_sending.n
    assert told.latency_from_sending.min >= delay_ns * 0.995  # the histogram's own error
    assert told.latency.p50 >= told.latency_from_sending.p50 * 0.995
    return told.latency.p50 - delay_ns


@pytest.mark.parametrize("delay_ns", [0, 3_000, 20_000, 100_000, 1_000_000])
def the_median_latency_is_the_delay_of_the_wire(tmp_path: Path, delay_ns: int) -> None:
    # Buckets are up to 0.8 % wide: from 128 us on a bucket is wider than 1 us.
    tolerance_ns = DELAY_TOLERANCE_NS + (0.004 * delay_ns if delay_ns > 128_000 else 0)
    with Bench(tmp_path, [f"{THERE} delay_ns={delay_ns} ring=16384 slot=128"], measures=True) as bench:
        errors: list[float] = []
        while len(errors) < ATTEMPTS and (not errors or abs(errors[-1]) > tolerance_ns):
            errors.append(_median_error_ns(bench, delay_ns))
    assert abs(errors[-1]) <= tolerance_ns, errors


def _tail_errors_ns(bench: Bench) -> dict[str, float]:
    """What percentiles and jitter differ from the truth of a wire on which each tenth frame is 5 us later."""
    told, truth = bench.run_one(stream(rate="20 kpps"), seconds=0.2)
    assert told.jitter.n == truth.taken - 1
    latency = told.latency_from_sending
    return {"p50": latency.p50 - 20_000, "p99": latency.p99 - 25_000, "jitter": told.jitter.mean - 1_000}


def the_tail_of_the_latency_and_the_jitter_are_the_wires(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=20000 late_every=10 late_ns=5000 slot=128"], measures=True) as bench:
        for _ in range(4 * ATTEMPTS):
            errors = _tail_errors_ns(bench)
            is_near = max(abs(errors["p50"]), abs(errors["p99"])) <= DELAY_TOLERANCE_NS
            if is_near and abs(errors["jitter"]) <= JITTER_TOLERANCE_NS:
                return
    raise AssertionError(errors)
