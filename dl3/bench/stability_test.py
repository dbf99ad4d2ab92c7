"""Combination of several results, and the criteria for a noisy machine."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from dl3.bench.fake import course_of
from dl3.bench.site import Found
from dl3.bench.stability import interruption_reasons, together, watch_of_bed
from dl3.bench.throughput import Wanted, find
from dl3.dut.bed import Bed
from dl3.host.noise import Look
from dl3.model.trial import Throughput, Trial
from dl3.record.reader import read
from dl3.search.throughput import SearchSettings, Undecided
from dl3.trial.fake import FakeGenerator


def found(pps: float, **values: Any) -> Found:
    counts = {"n_trials": 3, "n_invalid": 1, "search_seconds": 2.0, "passed_pps": pps, "resolution": 0.01}
    return Found(Throughput.model_construct(**{"pps": pps, "upper_pps": pps * 1.01, **counts, **values}), None)


def trial(asked_pps: float, is_behind: bool = False) -> Trial:
    return Trial.model_construct(asked_pps=asked_pps, invalid=("late: x",) if is_behind else (), is_behind=is_behind)


def leaves_a_single_result_as_it_is() -> None:
    one = together([found(1e6)], []).result
    assert (one.pps, one.repeats_pps, one.interval_pps, one.noise, one.range_pps) == (1e6, (), None, (), None)


def reports_the_median_that_was_measured() -> None:
    runs = [found(pps) for pps in (1.002e6, 1e6, 1.001e6, 0.999e6)]
    one = together(runs, []).result
    assert (one.pps, one.upper_pps) == (1e6, 1.01e6)
    assert one.repeats_pps == (1.002e6, 1e6, 1.001e6, 0.999e6)
    assert (one.n_trials, one.n_invalid, one.search_seconds) == (12, 4, 8)
    assert one.interval_pps == pytest.approx((1.0005e6 - 2054, 1.0005e6 + 2054), abs=1)
    assert one.noise == ()
    assert one.range_pps is None


def calls_results_noisy_that_lie_far_apart() -> None:
    one = together([found(pps) for pps in (1e6, 0.97e6, 1.01e6)], []).result
    assert one.noise == ("spread: the results of 3 searches differ by 4.0% at a resolution of 1.0%",)
    assert one.range_pps == one.interval_pps


def reports_a_range_where_the_machine_is_noisy() -> None:
    one = together([found(1e6, passed_pps=1.2e6)], ["steal: x"]).result
    assert (one.noise, one.range_pps) == (("steal: x",), (1e6, 1.2e6))
    assert together([found(1e6)], ["steal: x"]).result.range_pps == (1e6, 1.01e6)
    assert together([found(1e6, upper_pps=1e6)], ["steal: x"]).result.range_pps is None
    assert together([found(1e6, upper_pps=None)], ["steal: x"]).result.range_pps is None
    assert together([found(1e6, upper_pps=None, passed_pps=1.2e6)], ["steal: x"]).result.range_pps == (1e6, 1.2e6)


def distinguishes_a_generator_that_is_interrupted_from_one_at_its_ceiling() -> None:
    assert not list(interruption_reasons([]))
    assert not list(interruption_reasons([trial(1e6), *[trial(2e6, is_behind=True)] * 9]))
    assert not list(interruption_reasons([*[trial(1e6)] * 9, trial(1e6, is_behind=True)]))
    (reason,) = interruption_reasons([*[trial(1e6)] * 8, trial(1e6, is_behind=True), trial(5e5, is_behind=True)])
    assert reason.startswith("interrupted: 2 of 10 trials were INVALID because the generator fell behind")


def looks_before_and_after_and_searches_as_often_as_wanted(tmp_path: Path) -> None:
    looks = iter([Look(round_trip_ns=80.0), Look(round_trip_ns=420.0)])
    run = replace(course_of(FakeGenerator(), tmp_path), look=lambda: next(looks))
    strict, loose = find(run, Wanted(("64",), goals=(0.0, 0.005), repeats=3), "64", 0.0)
    for one in (strict.result, loose.result):
        assert len(one.repeats_pps) == 3
        assert len(set(one.repeats_pps)) == 1
        assert one.noise == ("distance: a cache line took 80 ns before and 420 ns after from core to core and back",)
    assert strict.result.pps < 7.3e6 < loose.result.pps
    record = read(tmp_path / "r.jsonl")
    assert record.results == (strict.result, loose.result)
    assert sum(trial.test == "ceiling" for trial in record.trials) == 3
    assert strict.result.search_seconds == pytest.approx(
        sum(trial.seconds for trial in record.trials if trial.test != "ceiling")
    )


@pytest.mark.parametrize("method", ["binary", "mlrsearch"])
def counts_a_search_without_a_result_as_noise_when_another_has_one(tmp_path: Path, method: Any) -> None:
    def spoil(results: dict[str, Any]) -> None:
        results["tsc_offset_ns"] = 500.0 if 2 <= results["run"] <= 3 else 0.0

    wanted = Wanted(("64",), SearchSettings(retries=1), method=method, repeats=2)
    (one,) = find(course_of(FakeGenerator(spoil=spoil), tmp_path), wanted, "64", 0.0)
    assert one.result.pps == pytest.approx(7.3e6, rel=0.005)
    assert [sentence[:14] for sentence in one.result.noise] == ["no result: at "]
    broken = course_of(FakeGenerator(spoil=lambda results: results.update(tsc_offset_ns=500.0)), tmp_path)
    with pytest.raises(Undecided, match="the TSCs of two workers are 500 ns apart"):
        find(broken, wanted, "64", 0.0)


@dataclass
class Sleeper:
    """A testbed that can only be suspended."""

    facts: dict[str, Any]
    calls: list[str] = field(default_factory=list)

    def freeze(self) -> None:
        """Record the call."""
        self.calls.append("freeze")

    def thaw(self) -> None:
        """Record the call."""
        self.calls.append("thaw")


def probes_the_cores_of_a_bed_while_it_stands_still() -> None:
    core = max(os.sched_getaffinity(0))
    bed = Sleeper({"lab": {"cores": [core, core]}})
    seen = watch_of_bed(cast(Bed, bed), Path("/nonexistent")).look()
    assert (set(seen.shares), seen.round_trip_ns, bed.calls) == ({core}, None, ["freeze", "thaw"])
    unnamed = Sleeper({})
    assert watch_of_bed(cast(Bed, unnamed), Path("/nonexistent")).look().shares == {}
    assert unnamed.calls == []
