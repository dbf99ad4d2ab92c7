"""Results for people: numbers on a quiet machine, ranges on a noisy one."""

from typing import Any

import pytest

from dl3.bench.site import Found
from dl3.cli.answers import as_plain, notes, rate, row, show
from dl3.model.trial import Throughput


def answer(**values: Any) -> Throughput:
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
    assert rate(answer(**values), 1e-6) == wanted


def writes_gigabits_and_goals_beside_the_rate() -> None:
    cells = row(Found(answer(goal_loss_ratio=0.005, n_invalid=2), None))
    assert cells == ("64", "0.005", "9.800", "6.586", None, "the device", None, None, None, "7, 2 INVALID")


def says_what_stands_behind_an_answer() -> None:
    assert list(notes(answer())) == []
    whole = answer(repeats_pps=(1e6,) * 6, interval_pps=(9.1e6, 10.2e6), exceed_ratio=0.5, noise=NOISE)
    assert list(notes(whole)) == [
        "64-byte frames, loss ratio 0: 6 searches, median 9.800 Mpps, with 95 % confidence between 9.100 and 10.200",
        "64-byte frames, loss ratio 0: up to 50% of the trial time at that rate may have exceeded it",
        "64-byte frames, loss ratio 0: noisy, steal: the hypervisor took 3.0% of core 1",
    ]


def prints_the_notes_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    show("throughput", [Found(answer(noise=NOISE), None)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "throughput"
    assert lines[-2].endswith("one search on a noisy machine; use --repeat 5 to see the spread of five searches")
    assert lines[-1].endswith("core 1")
    show("throughput", [Found(answer(noise=NOISE), None), Found(answer(), None)], is_brief=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("results are ranges where the machine was noisy")
    show("throughput", [Found(answer(), None)], is_brief=True)
    assert capsys.readouterr().out.splitlines()[-1].startswith("64 ")


def hands_the_range_to_programs() -> None:
    assert as_plain(Found(answer(noise=NOISE), None))["range_pps"] == (9.8e6, 9.84e6)
    assert as_plain(Found(answer(), None))["range_pps"] is None
