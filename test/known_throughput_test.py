"""Searches compared with a wire whose rate limit and delay are configured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness.answers import AS_DUE, THERE, Bench, stream
from harness.wired import BUILD

from dl3.control.client import Client
from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.search.mlr import Goals, Measure, find_throughputs
from dl3.search.throughput import Bounds, SearchResult, SearchSettings, find_throughput
from dl3.trial.accounting import MOST_LATE, MOST_PACING_ERROR
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

pytestmark = pytest.mark.alone  # one core for the wire, whose timing is measured

SECONDS = 0.1  # short, so that many trials finish before another process needs the core
DEPTH = 8  # frames that pass the limit at once; 0.08 % of a short trial
LOSS = 0.005
# For comparing searches: the wire's limit, full-length trials, and the relative width of results.
LIMIT_PPS, FULL_S, WIDTH = 100_000, 0.2, 0.005
BOUNDS = Bounds(2_000, 200_000, "asked")
DELAY_TOLERANCE_NS = 1_000 if BUILD.name == "build" else 20_000  # an instrumented worker takes longer for a round
JITTER_TOLERANCE_NS = DELAY_TOLERANCE_NS / 5
ATTEMPTS = 5  # another process on the core may spoil the median of one run


def _runner(bench: Bench) -> Runner:
    return Runner(Site(Client(bench.dl3gen.socket), dut_name="test device"))


def _order(pps: float, seconds: float = SECONDS) -> Order:
    return Order((Stream.model_validate(stream()),), "64", pps, seconds, "throughput", warm_up_s=0.0)


def _exact(runner: Runner, pps: float, seconds: float = SECONDS) -> Trial:
    """A trial, INVALID if stalls make it less exact than these tests are."""
    trial = runner.run(_order(pps, seconds))
    if trial.error_share <= MOST_LATE:
        return trial
    return trial.model_copy(update={"invalid": ("stalls: too many",), "is_behind": True})


@pytest.mark.timing
@pytest.mark.parametrize(
    ("limit_pps", "refuses"), [(100_000, 0), pytest.param(155_555, 0, marks=pytest.mark.long), (120_000, 1)]
)
def the_search_finds_the_limit_of_the_wire(tmp_path: Path, limit_pps: int, refuses: int) -> None:
    channel = f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} {AS_DUE} refuses={refuses} ring=16384 slot=128"
    settings = SearchSettings(resolution=0.002, retries=20)
    with Bench(tmp_path, [channel], measures=True) as bench:
        runner = _runner(bench)
        result = find_throughput(lambda pps: _exact(runner, pps), BOUNDS, settings)
    assert result.pps == pytest.approx(limit_pps, rel=0.005)
    assert result.limited_by == "dut"
    assert result.upper_pps is not None
    assert result.upper_pps >= result.pps
    assert result.best is not None
    assert result.best.account.lost == 0


@pytest.mark.timing
@pytest.mark.parametrize("limit_pps", [155_555, pytest.param(100_000, marks=pytest.mark.long)])
def the_search_of_rfc_9971_finds_both_limits_of_the_wire(tmp_path: Path, limit_pps: int) -> None:
    # A device that loses nothing up to R forwards R above it: at 1.005 R it loses half a percent.
    goals = Goals((0.0, LOSS), resolution=0.002, seconds=3 * SECONDS, retries=20)
    with Bench(
        tmp_path, [f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} {AS_DUE} ring=16384 slot=128"], measures=True
    ) as bench:
        runner = _runner(bench)
        measure = lambda pps, seconds: _exact(runner, pps, seconds)  # noqa: E731
        strict, loose = find_throughputs(measure, BOUNDS, goals)
    assert strict.pps == pytest.approx(limit_pps, rel=0.005)
    assert loose.pps == pytest.approx(limit_pps / (1 - LOSS), rel=0.005)
    assert (strict.limited_by, loose.limited_by) == ("dut", "dut")
    assert strict.upper_pps is not None
    assert loose.upper_pps is not None
    assert strict.pps < strict.upper_pps <= loose.upper_pps
    assert strict.best is not None
    assert loose.best is not None
    assert strict.best.account.lost == 0 < loose.best.account.lost <= LOSS * loose.best.account.sent
    assert loose.conditional_pps == pytest.approx(limit_pps, rel=0.005)


@dataclass
class Bill:
    """The cost of a method of finding both limits of a wire, in trials of all its searches."""

    name: str
    trials: list[Trial] = field(default_factory=list)
    results: Sequence[SearchResult[Trial]] = ()
    fault: Fault | None = None
    wall_s: float = 0.0

    @property
    def valid_s(self) -> float:
        """Counts valid trials: other processes on the core spoil trials of either method at random."""
        return sum(trial.seconds for trial in self.trials if not trial.invalid)

    @property
    def is_right(self) -> bool:
        """Whether both limits were found."""
        return not self.fault and all(map(_is_near, self.results, (LIMIT_PPS, LIMIT_PPS / (1 - LOSS))))

    def reported(self) -> str:
        """A line for the log."""
        n_invalid = sum(1 for trial in self.trials if trial.invalid)
        found = self.fault or ", ".join(f"{one.pps:,.0f} to {one.ended_pps:,.0f} packets/s" for one in self.results)
        return (
            f"{self.name}: {len(self.trials)} trials, {n_invalid} of them INVALID; {self.valid_s:.2f} s of valid "
            f"trials, {sum(trial.seconds for trial in self.trials):.2f} s of all; {self.wall_s:.1f} s by the clock; "
            f"{found}"
        )


def _is_near(found: SearchResult[Trial], limit_pps: float) -> bool:
    """Whether it is a limit of the wire, within the requested resolution."""
    # The upper rate is as requested, the lower as offered: these may differ by a thousandth.
    is_close = found.ended_pps - found.pps <= (WIDTH + MOST_PACING_ERROR) * found.ended_pps
    return is_close and found.pps == pytest.approx(limit_pps, rel=0.005)


def _halve_twice(measure: Measure[Trial]) -> Sequence[SearchResult[Trial]]:
    """A binary search for each goal."""
    settings = [SearchSettings(goal, WIDTH, retries=20) for goal in (0.0, LOSS)]
    return [find_throughput(lambda pps: measure(pps, FULL_S), BOUNDS, each) for each in settings]


def _search_once(measure: Measure[Trial]) -> Sequence[SearchResult[Trial]]:
    """One MLRsearch for both goals."""
    return find_throughputs(measure, BOUNDS, Goals((0.0, LOSS), resolution=WIDTH, seconds=FULL_S, retries=20))


def _bill(name: str, search: Callable[[Measure[Trial]], Sequence[SearchResult[Trial]]], bench: Bench) -> Bill:
    """The costs of one method."""
    made, began_s = Bill(name), time.monotonic()

    def measure(pps: float, seconds: float) -> Trial:
        made.trials.append(_exact(_runner(bench), pps, seconds))
        return made.trials[-1]

    try:
        made.results = search(measure)
    except Fault as fault:
        made.fault = fault
    made.wall_s = time.monotonic() - began_s
    return made


@pytest.mark.long
@pytest.mark.timing
def the_search_of_rfc_9971_takes_less_than_half_the_trial_time_of_two_binary_searches(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    wire = f"{THERE} limit_pps={LIMIT_PPS} limit_depth={DEPTH} {AS_DUE} ring=16384 slot=128"
    with Bench(tmp_path, [wire], measures=True) as bench:
        for _ in range(ATTEMPTS):
            ours, theirs = _bill("MLRsearch", _search_once, bench), _bill("binary searches", _halve_twice, bench)
            if ours.is_right and theirs.is_right:
                break
    print(f"{ours.reported()}\n{theirs.reported()}")
    assert ours.is_right
    assert theirs.is_right
    share = ours.valid_s / theirs.valid_s
    record_property("share of the binary searches' trial time", share)
    assert share < 0.5


@pytest.mark.timing
def a_wire_without_a_limit_is_limited_by_what_was_asked(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} ring=16384 slot=128"], measures=True) as bench:
        runner = _runner(bench)
        result = find_throughput(lambda pps: _exact(runner, pps), Bounds(1_000, 50_000), SearchSettings(retries=20))
    assert result.limited_by == "asked"
    assert result.pps == pytest.approx(50_000, rel=0.001)


def _valid_trial(bench: Bench, pps: float) -> Trial:
    """A valid trial; INVALID ones are repeated."""
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
    reported, _ = bench.run_one(stream(rate="50 kpps"), seconds=0.2)
    assert reported.received == reported.sent == reported.latency.n == reported.latency_from_sending.n
    assert reported.latency_from_sending.min >= delay_ns * 0.995  # resolution of the histogram
    assert reported.latency.p50 >= reported.latency_from_sending.p50 * 0.995
    return reported.latency.p50 - delay_ns


@pytest.mark.timing
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
    """The error of percentiles and jitter on a wire that delays every tenth frame by 5 us.

    Frames delayed further by a pause of the machine add to the mean jitter at most twice what they add to the mean
    latency, because each is part of two differences.
    """
    reported, truth = bench.run_one(stream(rate="20 kpps"), seconds=0.2)
    assert reported.jitter.n == truth.taken - 1
    latency = reported.latency_from_sending
    pauses = 2 * max(0.0, latency.mean - 20_500)
    jitter = max(0.0, abs(reported.jitter.mean - 1_000) - pauses)
    return {"p50": latency.p50 - 20_000, "p99": latency.p99 - 25_000, "jitter": jitter}


@pytest.mark.timing
def the_tail_of_the_latency_and_the_jitter_are_the_wires(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} delay_ns=20000 late_every=10 late_ns=5000 slot=128"], measures=True) as bench:
        for _ in range(4 * ATTEMPTS):
            errors = _tail_errors_ns(bench)
            is_near = max(abs(errors["p50"]), abs(errors["p99"])) <= DELAY_TOLERANCE_NS
            if is_near and errors["jitter"] <= JITTER_TOLERANCE_NS:
                return
    raise AssertionError(errors)
