"""Results for people: numbers on a quiet machine, ranges on a noisy one."""

import re
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.fake import course_of
from dl3.bench.site import Found
from dl3.bench.throughput import Wanted, find_all
from dl3.cli.report import result_as_json, results_of
from dl3.cli.results import as_plain, notes, rate, row, show
from dl3.model.trial import Throughput
from dl3.record.reader import read
from dl3.report.groups import Groups
from dl3.report.page import page_of
from dl3.report.texts import words_in
from dl3.report.words import Language
from dl3.search.throughput import SearchSettings
from dl3.trial.fake import FakeGenerator


def result(**values: Any) -> Throughput:
    names = {"at": "t", "campaign": "c", "dut": "dl3d", "frame": "64", "mean_bytes": 64, "line_bps": 0}
    terms = {"goal_loss_ratio": 0, "resolution": 0.005, "trial_seconds": 1, "repetitions": 1, "limited_by": "dut"}
    found = {"pps": 9.8e6, "upper_pps": 9.84e6, "n_trials": 7, "n_invalid": 0, "facts": {}}
    return Throughput.model_validate({**names, **terms, **found, **values})


NOISE = ("steal: the hypervisor took 3.0% of core 1",)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({}, "9.800"),
        ({"limited_by": "generator"}, ">= 9.800"),
        ({"limited_by": "asked"}, ">= 9.800"),
        ({"limited_by": "line"}, "9.800"),
        ({"noise": NOISE, "passed_pps": 11.2e6}, "9.800 to 11.200"),
        ({"noise": NOISE, "passed_pps": 9.8e6}, "9.800 to 9.840"),
        ({"noise": NOISE, "interval_pps": (9.1e6, 10.2e6)}, "9.100 to 10.200"),
        ({"interval_pps": (9.1e6, 10.2e6)}, "9.800"),
        ({"noise": NOISE, "upper_pps": 9.84e6, "limited_by": "generator"}, ">= 9.800"),
        ({"noise": NOISE, "upper_pps": 11.2e6, "ended_pps": 9.84e6, "limited_by": "generator"}, ">= 9.800 to 11.200"),
    ],
)
def writes_a_range_where_the_machine_was_noisy(values: dict[str, Any], wanted: str) -> None:
    assert rate(result(**values), 1e-6) == wanted


def writes_gigabits_and_goals_beside_the_rate() -> None:
    cells = row(Found(result(goal_loss_ratio=0.005, n_invalid=2), None))
    assert cells == ("64", "0.005", "9.800", "6.586", None, "the device", None, None, None, "7, 2 INVALID")


def adds_notes_about_the_search_to_a_result() -> None:
    assert list(notes(result())) == []
    whole = result(repeats_pps=(1e6,) * 6, interval_pps=(9.1e6, 10.2e6), exceed_ratio=0.5, noise=NOISE)
    assert list(notes(whole)) == [
        "64-byte frames, loss ratio 0: 6 searches, median 9.800 Mpps, with 95 % confidence between 9.100 and 10.200",
        "64-byte frames, loss ratio 0: up to 50% of the trial time at that rate may have exceeded it",
        "64-byte frames, loss ratio 0: noisy, steal: the hypervisor took 3.0% of core 1",
    ]


def prints_the_notes_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    show("throughput", [Found(result(noise=NOISE), None)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "throughput"
    assert lines[-2].endswith("one search on a noisy machine; use --repeat 5 to see the spread of five searches")
    assert lines[-1].endswith("core 1")
    show("throughput", [Found(result(noise=NOISE), None), Found(result(), None)], is_brief=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("results are ranges where the machine was noisy")
    show("throughput", [Found(result(), None)], is_brief=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("64 ")


def hands_the_range_to_programs() -> None:
    assert as_plain(Found(result(noise=NOISE), None))["range_pps"] == (9.8e6, 9.84e6)
    assert as_plain(Found(result(), None))["range_pps"] is None


def _invalid_at_the_start(results: dict[str, Any]) -> None:
    """The first trials after the ceiling are INVALID."""
    results["tsc_offset_ns"] = 500.0 if 2 <= results["run"] <= 3 else 0.0


ONE, THREE = SearchSettings(), SearchSettings(repetitions=3)


@pytest.mark.parametrize(
    ("generator", "wanted"),
    [
        (FakeGenerator(), Wanted(("64",), ONE)),
        (FakeGenerator(), Wanted(("64",), ONE, method="binary", goals=(0.0, 0.005))),
        (FakeGenerator(), Wanted(("64",), ONE, goals=(0.0, 0.005), repeats=2)),
        (FakeGenerator(spoil=_invalid_at_the_start), Wanted(("64",), ONE)),
        (FakeGenerator(spoil=_invalid_at_the_start), Wanted(("64",), SearchSettings(retries=1), repeats=2)),
        (FakeGenerator(device_pps=19.9e6), Wanted(("64",), THREE, method="binary")),
        (FakeGenerator(device_pps=50e6), Wanted(("64",), THREE)),
    ],
    ids=["one", "goals", "repeats", "invalid", "without a result", "lossy ceiling", "ceiling only"],
)
def shows_as_many_trials_as_the_page_and_both_kinds_of_json(
    tmp_path: Path, generator: FakeGenerator, wanted: Wanted
) -> None:
    run = course_of(generator, tmp_path)
    found = find_all(run, wanted)
    records = [read(run.record)]
    trials = [trial for trial in records[0].trials if trial.test == "throughput"]
    trials = trials or [trial for trial in records[0].trials if trial.seconds == run.seconds]
    n, n_invalid = len(trials), sum(1 for trial in trials if trial.invalid)
    results, words = results_of(records), words_in(Language.EN)
    assert len(found) == len(results.searches) == len(wanted.goals)
    for one, search in zip(found, results.searches, strict=True):
        assert row(one)[-1] == (f"{n}, {n_invalid} INVALID" if n_invalid else f"{n}")
        for counts in (as_plain(one), result_as_json(search, Groups(results))):
            assert (counts["n_trials"], counts["n_invalid"]) == (n, n_invalid)
    cell = words("count.with_invalid" if n_invalid else "count.trials", n=n, invalid=n_invalid)
    assert re.search(rf'data-col="trials">(<a [^>]*>)?{cell}<', page_of(results, Language.EN, "now"))
