"""A generator that loses its core reports it: the trial is INVALID with the reason, and nothing counts as loss."""

from pathlib import Path

import pytest
from harness.answers import CORES, THERE, Bench, stream
from harness.busy import busy

from dl3.control.generator import Pauses, Results
from dl3.trial.accounting import Judged, reasons
from dl3.trial.stalls import stalled_of

SECONDS = 0.5
STARVING_RUNS = 10


@pytest.fixture
def two_cores() -> None:
    assert len(CORES) > 1, "two workers need two cores"


def _texts(results: Results) -> list[str]:
    return [reason.text for reason in reasons(results)]


@pytest.mark.timing
def a_sender_without_its_core_is_late_and_loses_nothing(tmp_path: Path) -> None:
    with Bench(tmp_path, [f"{THERE} ring=65536 slot=128"]) as bench:
        with busy(CORES[-1]):
            reported, truth = bench.run_one(stream(rate="500 kpps"), seconds=SECONDS)
            results = bench.dl3gen.results()
        assert reported.late > 0.001 * (reported.sent + reported.late)
        assert any(text.startswith("late: ") for text in _texts(results))
        assert reported.sent + reported.late == SECONDS * 500_000
        assert reported.sent == truth.offered
        assert (reported.lost, reported.lost_by_gaps, truth.lost) == (0, 0, 0)
        assert reported.longest_lag_us > 0
        assert results.workers[0].longest_gap_us > 1000


@pytest.mark.timing
def what_is_sent_after_a_pause_is_at_most_64_frames(tmp_path: Path) -> None:
    # The bucket holds at most the frames that may follow a pause at once, and those of the run itself.
    with Bench(tmp_path, [f"{THERE} ring=65536 slot=128 limit_pps=300000 limit_depth=80"]) as bench, busy(CORES[-1]):
        reported, truth = bench.run_one(stream(rate="250 kpps"), seconds=SECONDS)
        assert reported.late > 0
        assert truth.over_limit == 0


@pytest.mark.timing
@pytest.mark.usefixtures("two_cores")
def a_sink_without_its_core_is_late_and_nobodys_loss(tmp_path: Path) -> None:
    workers = [{"core": CORES[0], "queues": ["left/0"]}, {"core": CORES[-1], "queues": ["right/0"]}]
    with Bench(tmp_path, [f"{THERE} ring=2048 slot=128"], workers=workers) as bench:
        with busy(CORES[-1]):
            for _ in range(STARVING_RUNS):
                reported, truth = bench.run_one(stream(rate="1 Mpps"), seconds=SECONDS)
                if truth.ring_full:
                    break  # otherwise the sink kept the core for the whole run
            results = Results.model_validate(bench.dl3gen.call("results", timeline=True))
            pauses = Pauses.model_validate(bench.dl3gen.call("gaps"))
        (right,) = (each for each in results.ports if each.name == "right")
        assert truth.ring_full > 0
        assert reported.lost == reported.lost_by_gaps == truth.ring_full
        assert right.late_polls > 0
        assert right.longest_gap_us > 2048
        stalled = stalled_of(results, pauses, {}, ())
        assert reported.late + truth.ring_full >= stalled.frames >= truth.ring_full, "a bound that holds"
        found = reasons(results, Judged(goals=(0.0,), stalled=stalled))
        assert any(reason.text.startswith("stalls: ") for reason in found)
