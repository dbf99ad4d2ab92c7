"""Loss above the throughput is called one on purpose, and no other."""

import json
from pathlib import Path

import pytest
from harness.campaigns import others
from harness.records import Maker
from typer.testing import CliRunner

from dl3.cli.main import app
from dl3.record.journal import append
from dl3.report.on_purpose import Throughputs, times_text
from dl3.report.page import page
from dl3.report.results import Record, gather
from dl3.report.words import Language

MAKER = Maker(ceiling_pps=7e6)
RESULT = MAKER.result("64", 7e6)
SAID = {Language.EN: "offered {} x the throughput, on purpose", Language.ZH: "按测试要求，负载为吞吐量的 {} 倍"}


@pytest.mark.parametrize(
    ("test", "pps", "times"),
    [
        ("ceiling", 14e6, 2.0),
        ("throughput", 9.8e6, 1.4),
        ("frame loss", 9.8e6, 1.4),
        ("forwarding", 9.8e6, 1.4),
        ("latency", 9.8e6, None),
        ("reset", 9.8e6, None),
        ("free", 9.8e6, None),
        ("throughput", 7.001e6, None),
        ("throughput", 3e6, None),
        ("recovery", 9.8e6, 1.1),
    ],
)
def a_trial_is_overloaded_on_purpose_where_its_test_asks_for_it(test: str, pps: float, times: float | None) -> None:
    trial = MAKER.trial("64", pps, test=test)
    found = Throughputs(gather([trial, RESULT])).of_trial(trial)
    assert found == (None if times is None else pytest.approx(times, rel=0.001))


def nothing_is_reported_without_loss_or_without_a_throughput() -> None:
    lossless, lossy = MAKER.trial("64", 5e6), MAKER.trial("64", 9.8e6)
    assert Throughputs(gather([lossless, MAKER.result("64", 1e6)])).of_trial(lossless) is None
    assert Throughputs(gather([lossy])).of_trial(lossy) is None
    assert Throughputs(gather([lossy, MAKER.result("512", 1e6)])).of_trial(lossy) is None


def a_small_overload_is_not_rounded_away() -> None:
    assert [times_text(one) for one in (1.96, 1.1, 1.02, 1.005)] == ["2.0", "1.1", "1.02", "1.005"]


@pytest.mark.parametrize("language", Language)
def the_report_shows_it_beside_each_loss(language: Language) -> None:
    records: list[Record] = [MAKER.trial("64", 14e6, test="ceiling"), RESULT, *others(MAKER, "64")]
    text = page(records, language, "now")
    assert f"有效；{SAID[language].format('2.0')}" in text or f"valid; {SAID[language].format('2.0')}" in text
    # The most of frame loss and of forwarding, in the table and at the dot, and the overload of recovery.
    assert text.count(SAID[language].format("1.4")) >= 5
    assert SAID[language].format("1.0") not in text


@pytest.mark.parametrize("language", Language)
def explain_reports_it_beside_the_loss(language: Language, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for one in (MAKER.trial("64", 9.8e6), RESULT):
        append(path, one)
    run = CliRunner().invoke(app, ["explain", str(path), "--lang", language.value])
    assert SAID[language].format("1.4") in run.stdout.splitlines()[0]
    found = json.loads(CliRunner().invoke(app, ["explain", str(path), "--json"]).stdout)
    assert found["times_throughput"] == pytest.approx(1.4, rel=0.001)
