"""RFC 2544's tests (throughput: known_throughput_test.py) and RFC 2889's rates on a known device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from harness.answers import AS_DUE, THERE, Bench, Truth, port, stream
from harness.wired import BUILD

from dl3.bench.conduct import conduct
from dl3.bench.fake import job_of
from dl3.bench.known import Known
from dl3.bench.reset import measure_reset
from dl3.bench.site import ProgressListener, Run
from dl3.bench.testbed import Testbed
from dl3.control.client import Client
from dl3.model.campaign import Job
from dl3.model.fault import Fault
from dl3.model.results import BackToBack, Forwarding, LossPoint, Recovery
from dl3.model.stream import Stream
from dl3.model.trial import Throughput, Trial
from dl3.record.reader import read
from dl3.trial.order import Site
from dl3.trial.run import Runner

pytestmark = pytest.mark.alone  # one core for the wire, whose timing is measured

LINE_PPS = 100e6 / 84 / 8
LINE = [port(0, line_rate="100 Mbit/s"), port(1)]
WIDE = "ring=65536 slot=128"
CATCH_UP, DEPTH = 256, 8  # frames that may follow a pause, and frames that pass the limit at once
DELAY_TOLERANCE_NS = 1_000 if BUILD.name == "build" else 20_000  # an instrumented worker takes longer for a round
ATTEMPTS = 6  # another process on the core may spoil one
MOST_RESULTS = 25
A = TypeVar("A")


class Witness(ProgressListener):
    """Compares each trial with what the device did, exactly."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.seen: list[tuple[Trial, Truth]] = []

    def on_trial(self, trial: Trial) -> None:
        """Adds one trial."""
        truth = self.bench.truths()[0]
        self.bench.forget()
        self.seen.append((trial, truth))
        assert trial.account.sent == truth.offered
        assert trial.account.lost == truth.lost


def _run(bench: Bench, folder: Path, seconds: float, catch_up: int = CATCH_UP) -> Run:
    site = Site(Client(bench.dl3gen.socket), dut_name="device", campaign="now")
    streams = (Stream.model_validate(stream(catch_up=catch_up)),)
    return Run(Runner(site), streams, folder / "record.jsonl", seconds, warm_up_s=0.0, listener=Witness(bench))


def _known(job: Job, pps: float) -> Known:
    """A throughput from an earlier search."""
    rates: dict[str, Any] = {"pps": pps, "upper_pps": pps, "limited_by": "dut", "mean_bytes": 64.0}
    result = Throughput.model_construct(dut="device", frame="64", goal_loss_ratio=0.0, **rates)
    known = Known()
    known.learn(job, result)
    return known


def _result(bench: Bench, folder: Path, job: Job, known: Known | None = None) -> Any:
    bench.forget()
    catch_up = 16_384 if job.test == "back-to-back" else CATCH_UP  # a burst must be complete
    (made,) = conduct(_run(bench, folder, job.effort.seconds, catch_up), job, None, known or Known())
    return made


def _made(measure: Callable[[], A]) -> A | Fault:
    try:
        return measure()
    except Fault as fault:
        return fault


def _until(measure: Callable[[], A], is_near: Callable[[A], bool]) -> A:
    """The first result that was not disturbed."""
    found: list[A | Fault] = []
    for _ in range(ATTEMPTS):
        made = _made(measure)
        if not isinstance(made, Fault) and is_near(made):
            return made
        found.append(made)
    raise AssertionError(found)


def _limited(folder: Path, limit_pps: int) -> Bench:
    """A device that forwards at most this many frames per second, on a line that carries more."""
    wire = f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} {AS_DUE} {WIDE}"
    return Bench(folder, [wire], measures=True, ports=LINE)


LOADS = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]  # of line rate; the device forwards 80 of 148.8 kpps


def _valid_points(bench: Bench, folder: Path) -> dict[float, LossPoint]:
    """A valid trial of each load: on a busy machine, one result has some of them, several results have all."""
    found: dict[float, LossPoint] = {}
    for _ in range(MOST_RESULTS):
        made = _made(lambda: _result(bench, folder, job_of("frame loss", seconds=0.4)))
        if isinstance(made, Fault):
            continue
        assert [point.loss_ratio for point in made.points[-2:]] == [0, 0]
        found |= {round(point.share, 3): point for point in made.points}
        if found.keys() >= set(LOADS):
            break
    return found


@pytest.mark.timing
def the_loss_of_each_load_is_known_to_the_frame(tmp_path: Path) -> None:
    limit_pps = 80_000
    with _limited(tmp_path, limit_pps) as bench:
        points = _valid_points(bench, tmp_path)
    assert points.keys() >= set(LOADS)
    trials = {trial.offered_pps: trial for trial in read(tmp_path / "record.jsonl").trials if not trial.invalid}
    for point in points.values():
        trial = trials[point.pps]
        exact = DEPTH / (trial.seconds * limit_pps)
        assert point.pps == pytest.approx(LINE_PPS * point.share, rel=0.002 + trial.error_share)
        assert point.loss_ratio == pytest.approx(max(0.0, 1 - limit_pps / point.pps), abs=exact + trial.error_share), (
            "beyond what stalls can have cost"
        )


@pytest.mark.timing
def one_in_n_is_lost_at_any_load(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} drop_every=50 {WIDE}"], measures=True, ports=LINE) as bench:
        result = _result(bench, tmp_path, job_of("frame loss", seconds=0.1))
    assert 5 <= len(result.points) <= 10
    for point in result.points:
        assert point.loss_ratio == pytest.approx(1 / 50, abs=1 / 1400)  # plus or minus one frame


@pytest.mark.timing
@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def the_latency_at_a_load_is_the_delay_of_the_device(tmp_path: Path, load: float) -> None:
    throughput_pps, delay_ns = 100_000, 100_000
    job = job_of("latency", seconds=0.2, loads=(load,))
    with Bench(tmp_path, [f"{THERE} delay_ns={delay_ns} {WIDE}"], measures=True, ports=LINE) as bench:
        trial = _until(
            lambda: _result(bench, tmp_path, job, _known(job, throughput_pps)),
            lambda found: not found.invalid and abs(found.latency_from_sending.p50 - delay_ns) <= DELAY_TOLERANCE_NS,
        )
    assert isinstance(trial, Trial)
    assert (trial.load, trial.asked_pps) == (load, load * throughput_pps)
    assert trial.latency.n == trial.latency_from_sending.n == trial.account.received == trial.account.sent
    assert delay_ns * 0.995 <= trial.latency_from_sending.min <= trial.latency_from_sending.p50
    assert trial.latency.p50 >= trial.latency_from_sending.p50 * 0.995  # plus the time since a frame was due


@pytest.mark.timing
@pytest.mark.long
def the_longest_burst_is_what_buffer_and_drain_make_of_it(tmp_path: Path) -> None:
    buffer, drain_pps = 2000, 50_000
    longest = 1 + buffer / (1 - drain_pps / LINE_PPS)
    channel = f"{THERE} limit_pps={drain_pps} limit_depth={buffer} queues=1 {WIDE}"
    job = job_of("back-to-back", seconds=1.0, resolution=0.002, repetitions=3)
    with Bench(tmp_path, [channel], measures=True, ports=LINE) as bench:
        # A burst that is delayed on its way finds more room: never below the true value, seldom above.
        result = _until(
            lambda: _result(bench, tmp_path, job, _known(job, drain_pps)),
            lambda found: max(found.bursts) <= longest * 1.005,
        )
    assert isinstance(result, BackToBack)
    assert min(result.bursts) >= int(longest * 0.998) - 1
    assert not result.is_at_least
    assert result.burst_pps == pytest.approx(LINE_PPS, rel=1e-6)
    assert result.implied_buffer_s == pytest.approx(longest / LINE_PPS, rel=0.005)
    assert result.corrected_buffer_s == pytest.approx(buffer / LINE_PPS, rel=0.006)


@pytest.mark.timing
def a_device_without_a_limit_takes_any_burst(tmp_path: Path) -> None:
    job = job_of("back-to-back", seconds=0.2)
    with Bench(tmp_path, [f"{THERE} {WIDE}"], measures=True, ports=LINE) as bench:
        result = _result(bench, tmp_path, job, _known(job, LINE_PPS))
    assert (result.is_at_least, result.bursts) == (True, (int(LINE_PPS * 0.2),))


@pytest.mark.timing
@pytest.mark.parametrize("after_ms", [50, *(pytest.param(ms, marks=pytest.mark.long) for ms in (0, 400))])
def the_recovery_takes_as_long_as_the_device_sulks(tmp_path: Path, after_ms: int) -> None:
    limit_pps = 60_000
    channel = f"{THERE} limit_pps={limit_pps} limit_depth={DEPTH} {AS_DUE} after_ns={after_ms}000000 {WIDE}"
    job = job_of("recovery", seconds=0.5)
    with Bench(tmp_path, [channel], measures=True, ports=LINE) as bench:
        # The last frame above the limit arrives up to 11 frames (0.17 ms) before the load drops.
        result = _until(
            lambda: _result(bench, tmp_path, job, _known(job, limit_pps)),
            lambda found: after_ms / 1e3 - 0.0005 <= found.seconds[0] <= after_ms / 1e3 + 0.0005,
        )
    assert isinstance(result, Recovery)
    assert result.overload_pps == pytest.approx(66_000)
    assert result.recovery_pps == 30_000


class _Trigger:
    """Resets the device in the wire: 300 ms outage for the process, 20 ms for the port."""

    def __init__(self, bench: Bench, witness: Witness) -> None:
        self._bench, self._witness = bench, witness
        self._last = dict[str, int]()  # the trial of the last reset of this kind: an INVALID one came before

    def reset_process(self) -> None:
        """Reset the process."""
        self._reset("process", 300_000_000)

    def reset_port(self) -> None:
        """Reset the port."""
        self._reset("port", 20_000_000)

    def dead(self, what: str) -> int:
        """Frames that arrived during the outage, in the trial from which the result was computed."""
        return self._witness.seen[self._last[what]][1].dead

    def _reset(self, what: str, nanoseconds: int) -> None:
        self._last[what] = len(self._witness.seen)
        self._bench.die(nanoseconds)


@pytest.mark.timing
def a_reset_takes_as_long_as_the_device_is_dead(tmp_path: Path) -> None:
    wanted_s = {"process": 0.3, "port": 0.02}
    job = job_of("reset", seconds=1.0)
    with Bench(tmp_path, [f"{THERE} {WIDE}"], measures=True, ports=LINE) as bench:
        run = _run(bench, tmp_path, 1.0)
        assert isinstance(run.listener, Witness)
        trigger = _Trigger(bench, run.listener)

        def measure() -> Any:
            bench.forget()
            return measure_reset(Testbed(run, job, None, _known(job, 100_000)), trigger)

        # A kind whose trials were all INVALID has no result.
        results = _until(
            measure,
            lambda made: (
                len(made) == len(wanted_s)
                and all(abs(result.seconds[0] - wanted_s[result.what]) < 0.001 for result in made)
            ),
        )
    assert [result.what for result in results] == ["process", "port"]
    for result in results:
        lost = trigger.dead(result.what)
        assert result.lost == (lost,)
        assert lost / result.offered_pps == pytest.approx(wanted_s[result.what], abs=0.001)


@pytest.mark.long
@pytest.mark.timing
def the_forwarding_rate_is_the_limit_at_all_loads_above_it(tmp_path: Path) -> None:
    limit_pps = 80_000
    with _limited(tmp_path, limit_pps) as bench:
        result = _until(
            lambda: _result(bench, tmp_path, job_of("forwarding", seconds=0.4)), lambda found: len(found.points) == 10
        )
    assert isinstance(result, Forwarding)
    shortest_s = min(trial.seconds for trial in read(tmp_path / "record.jsonl").trials if not trial.invalid)
    more = 1 + DEPTH / (shortest_s * limit_pps)  # what its queue held at the end of a trial that stalls shortened
    assert limit_pps * 0.995 <= result.at_most_offered_pps <= result.most_pps <= limit_pps * more * 1.001
    assert result.most_at_pps > limit_pps
    for point in result.points:
        assert point.pps * (1 - point.loss_ratio) == pytest.approx(min(point.pps, limit_pps), rel=0.015)
