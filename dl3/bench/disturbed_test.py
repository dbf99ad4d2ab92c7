"""Results beside stalls of the generator are those without them, and say so; the generator and its stalls are simulated."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.compare import Contest, NoSample, Sample, Side, measured, take_pairs
from dl3.bench.disturbed import error_of, stall_noise, taker_of
from dl3.bench.fake import job_of
from dl3.bench.frame_loss import measure_frame_loss
from dl3.bench.known import Known
from dl3.bench.site import Run, streams_of
from dl3.bench.testbed import Testbed
from dl3.bench.throughput import Wanted, find_all
from dl3.model.evidence import Stalled
from dl3.model.trial import Account, Trial
from dl3.record.reader import read
from dl3.search.throughput import SearchSettings
from dl3.trial.fake import START_NS, FakeGenerator
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner

RING = 16_384
DEVICE_PPS = 7.3e6


@dataclass
class Core:
    """The generator's core: another thread has it for `stall_s` once in `period_s`. Spoils the results of runs."""

    generator: FakeGenerator
    period_s: float = 0.2
    stall_s: float = 0.01
    now_s: float = 0.03

    def __post_init__(self) -> None:
        self.generator.spoil = self.spoil
        self.generator.buffer_frames = RING

    def spans(self, seconds: float) -> list[tuple[float, float]]:
        """The stalls within the next run, relative to its start."""
        first, last = int(self.now_s / self.period_s), int((self.now_s + seconds) / self.period_s)
        starts = [n * self.period_s - self.now_s for n in range(first, last + 1)] if self.stall_s else []
        both = [(max(0.0, at_s), min(seconds, at_s + self.stall_s)) for at_s in starts]
        return [(begin, end) for begin, end in both if end > begin]

    def spoil(self, results: dict[str, Any]) -> None:
        """A stalled generator sends nothing and loses what its ring cannot hold; rings hide a short overload."""
        (stream,), seconds = results["streams"], results["seconds"]
        spans = self.spans(seconds)
        self.now_s += seconds + 0.3712
        stalled_s = sum(end - begin for begin, end in spans)
        offered_pps = stream["sent"] / seconds
        unsent = round(offered_pps * stalled_s)
        sent = stream["sent"] - unsent
        in_time = round(min(sent, DEVICE_PPS * (seconds - stalled_s)))
        received = min(sent, in_time + RING) - 3000 * len(spans)
        held_s = max(0, received - in_time) / DEVICE_PPS
        stream.update(sent=sent, received=received, lost=sent - received, lost_by_gaps=sent - received)
        stream.update(late=stream["late"] + unsent if stream["asked_pps"] else 0, offered_pps=sent / seconds)
        stream["latency_from_sending"].update(p90=held_s * 1e9)
        results["ports"][1]["late_polls"] = len(spans)
        gaps = [{"worker": 0, "core": 1, "at_ns": START_NS + round(b * 1e9), "us": (b - a) * 1e6} for a, b in spans]
        self.generator.gaps = {"gaps": gaps, "forgotten": 0, "now_ns": START_NS}


def running(folder: Path, **core: float) -> Run:
    """A run with a generator on such a core."""
    generator = FakeGenerator(device_pps=DEVICE_PPS)
    Core(generator, **core)
    runner = Runner(Site(generator, campaign="now", facts={}), sleep=lambda _: None)
    return Run(runner, streams_of(generator, None), folder / "r.jsonl", seconds=1.0)


def sided(folder: Path, **core: float) -> Side:
    """A device of a comparison that is always there."""

    class Bed:
        def freeze(self) -> None: ...

        def thaw(self) -> None: ...

    return Side(Bed(), running(folder, **core))  # type: ignore[arg-type]


def forwarding(folder: Path, **core: float) -> float:
    return measured(sided(folder, **core), "64", Contest(("64",), folder / "r.jsonl")).pps


def throughput(folder: Path, method: Any, **core: float) -> float:
    wanted = Wanted(("64",), SearchSettings(resolution=0.005), method=method)
    (found,) = find_all(running(folder, **core), wanted)
    return found.result.pps


MEASURES: dict[str, Callable[..., float]] = {
    "forwarding": forwarding,
    "mlrsearch": lambda folder, **core: throughput(folder, "mlrsearch", **core),
    "binary": lambda folder, **core: throughput(folder, "binary", **core),
}


@pytest.mark.parametrize("what", MEASURES)
@pytest.mark.parametrize(
    "core",
    [
        {},
        {"period_s": 0.11, "stall_s": 0.005},
        {"period_s": 0.25, "stall_s": 0.02},
        {"period_s": 0.9, "stall_s": 0.004},
    ],
    ids=str,
)
def a_result_beside_stalls_is_that_without_them_within_2_percent(
    tmp_path: Path, what: str, core: dict[str, float]
) -> None:
    quiet = MEASURES[what](tmp_path, stall_s=0.0)
    assert MEASURES[what](tmp_path, **core) == pytest.approx(quiet, rel=0.02)


def a_throughput_beside_stalls_is_a_range_and_says_why(tmp_path: Path) -> None:
    run = running(tmp_path)
    (found,) = find_all(run, Wanted(("64",), SearchSettings(resolution=0.005)))
    result = found.result
    assert result.range_pps
    reasons = [reason for reason in result.noise if reason.startswith("stalls: ")]
    assert len(reasons) == 1
    assert "trials were shortened to as little as " in reasons[0]
    record = read(run.record)
    assert record.trials == tuple(run.made)
    assert {trial.ordered_s for trial in record.trials if trial.seconds < 0.09} <= {1.0, 0.1, 2.0}
    assert any(trial.ordered_s for trial in record.trials if not trial.invalid)


def a_quiet_machine_has_whole_trials_and_a_number(tmp_path: Path) -> None:
    run = running(tmp_path, stall_s=0.0)
    (found,) = find_all(run, Wanted(("64",), SearchSettings(resolution=0.005)))
    assert (found.result.noise, found.result.range_pps, found.result.stall_error) == ((), None, 0.0)
    assert not any(trial.ordered_s or trial.error_share for trial in run.made)


def loads_beside_stalls_have_valid_trials_and_say_why(tmp_path: Path) -> None:
    run = running(tmp_path)
    (result,) = measure_frame_loss(Testbed(run, job_of("frame loss"), None, Known()))
    assert result.invalid_shares == ()
    assert any("were shortened" in reason for reason in result.noise)
    lossy = {point.share: point.loss_ratio for point in result.points if point.loss_ratio}
    for share, ratio in lossy.items():
        assert ratio == pytest.approx(max(0.0, 1 - DEVICE_PPS / (20e6 * share)), abs=0.02)


def what_happens_at_a_certain_time_is_not_shortened(tmp_path: Path) -> None:
    run = running(tmp_path)
    act = lambda: None  # noqa: E731
    for test, action in (("free", None), ("reset", None), ("latency", act)):
        run.made.clear()
        assert run.trial(Order(run.streams, "64", 1e6, 1.0, test), action).is_stalled  # type: ignore[arg-type]
        assert len(run.made) == 1


def a_comparison_goes_on_without_a_pair_and_ends_without_most(tmp_path: Path) -> None:
    settings = Contest(("64",), tmp_path / "r.jsonl", pairs=3)
    sides = sided(tmp_path, stall_s=0.0), sided(tmp_path, period_s=0.004, stall_s=0.002)
    with pytest.raises(NoSample, match=r"trials were INVALID; stalls: the generator stalled"):
        take_pairs(sides, "64", settings)
    later = sided(tmp_path, period_s=0.004, stall_s=0.002)
    core: Core = later.run.site.generator.spoil.__self__  # type: ignore[attr-defined]
    first = core.spoil

    def recovering(results: dict[str, Any]) -> None:
        core.stall_s = 0.002 if len(later.run.made) < 13 else 0.0  # two groups of trials
        first(results)

    later.run.site.generator.spoil = recovering  # type: ignore[attr-defined]
    pairs, faults = take_pairs((sided(tmp_path, stall_s=0.0), later), "64", settings)
    assert (len(pairs), len(faults)) == (2, 1)
    assert isinstance(pairs[0][0], Sample)


def a_pair_has_no_result_where_the_core_never_was_the_generator_s(tmp_path: Path) -> None:
    taken = sided(tmp_path, period_s=1e9, stall_s=1e9)
    with pytest.raises(NoSample, match="dl3gen sent nothing at its maximum rate; late: the generator sent nothing"):
        measured(taken, "64", Contest(("64",), tmp_path / "r.jsonl"))
    assert any(one.ordered_s for one in taken.run.made), "shorter trials were tried"


def trial(us: float = 0.0, who: str = "", frames: int = 0, ordered_s: float = 0.0, **more: Any) -> Trial:
    """Only what stalls did to it."""
    stalled = Stalled(n=1, us=us, longest_us=us, frames=frames, who=who)
    account = Account.model_construct(received=100_000)
    values = {"invalid": (), "account": account, "stalled": stalled, "ordered_s": ordered_s, "seconds": 0.05, **more}
    return Trial.model_construct(**values)


def says_how_many_trials_were_shortened_and_for_whom() -> None:
    trials = [trial(9e3, "make", ordered_s=1.0), trial(5e3, "cron"), trial(1e3, "make")]
    assert list(stall_noise(trials, 0.0061)) == [
        "stalls: 1 of 3 trials were shortened to as little as 50 ms, because the generator stalled for up to 9,000 us, "
        "mostly because make had its core",
        "stall cost: stalls of the generator can have cost up to 0.61% of the frames behind the result",
    ]
    assert list(stall_noise([trial(9e3, "make")], 0.0)) == []
    assert taker_of([trial(9e3), trial(5e3, "cron")]) == ""


def the_error_is_that_of_the_trials_that_count() -> None:
    assert error_of([trial(frames=500), trial(frames=9_000, invalid=("late: x",))]) == 0.005
    assert error_of([]) == 0.0
    assert error_of([trial(frames=90)]) == 0.0, "any valid trial may miss as much"
