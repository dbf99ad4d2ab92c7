"""The report of a campaign in use: hovering, clicking, switching series off, saving, following links."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
from harness.campaigns import every_test, proof, white_paper
from harness.chromium import Chromium, chromium_at
from harness.records import Maker, campaign

from dl3.model.campaign import Plan
from dl3.model.results import BackToBack, Forwarding, FrameLoss, Proof, Recovery, Reset, Versus
from dl3.model.trial import Throughput, Trial
from dl3.report.page import page
from dl3.report.published import published_for
from dl3.report.results import Record
from dl3.report.words import Language

AT = "2026-11-22T00:00:00+00:00"
SVG = "{http://www.w3.org/2000/svg}"
RECORDS = white_paper()
PLAN = next(record for record in RECORDS if isinstance(record, Plan))
FIRST = next(case for case in PLAN.cases if case.key == "1.1")
RESULTS = [record for record in RECORDS if isinstance(record, Throughput)]
OF_FIRST = [one for one in RESULTS if one.job in {job.key for job in FIRST.jobs}]
STRICT = [one for one in OF_FIRST if one.goal_loss_ratio == 0]
MOST_BYTES = 2_000_000
CHART = "#chart-case-1-1-published"


def _written(folder: Path, records: list[Record]) -> Path:
    made = folder / "report.html"
    made.write_text(page(records, Language.EN, AT), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    folder = tmp_path_factory.mktemp("white-paper")
    made = _written(folder, RECORDS)
    assert made.stat().st_size < MOST_BYTES
    with chromium_at(made, folder) as chromium:
        yield chromium


def _texts(shown: Chromium, selector: str) -> list[str]:
    found = shown.see(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")
    return [str(text) for text in found]


def _is_drawn(shown: Chromium, selector: str) -> bool:
    return bool(shown.see(f"document.querySelector({selector!r}).getClientRects().length > 0"))


def reports_for_each_case_whether_it_was_run_or_why_not(shown: Chromium) -> None:
    outcomes = dict(
        zip(_texts(shown, "#cases td[data-col=case]"), _texts(shown, "#cases td[data-col=outcome]"), strict=True)
    )
    assert list(outcomes) == [case.key for case in PLAN.cases]
    assert len(outcomes) == 19
    for case in PLAN.cases:
        if not case.jobs:
            assert case.reason
            assert outcomes[case.key] == case.reason.en
    reported = {case.key: outcomes[case.key] for case in PLAN.cases if case.jobs}
    assert reported["1.1"] == "measured"
    assert reported["1.2"] == "partly measured: 1 of 2 settings are not applicable here"
    assert reported["1.7"] == "partly measured: 10 of 12 settings are not applicable here"
    assert reported["3.3"] == "partly measured"  # one job has no result
    assert "10 of 19 cases were measured on this machine (3 of them partly)" in _texts(shown, "main, body")[0]


def draws_what_was_measured_beside_what_was_published(shown: Chromium) -> None:
    bars = shown.see(
        f"[...document.querySelectorAll('{CHART} rect[data-value]')].map("
        "e => [e.classList[0], e.dataset.frame, Number(e.dataset.value)])"
    )
    measured = sorted([one.frame, one.pps / 1e6] for one in STRICT)
    assert sorted(bar[1:] for bar in bars if bar[0] == "bar") == measured
    published = [[row.frame, (row.pps or 0) / 1e6] for row in published_for(["white-paper 1.1"])]
    assert sorted(bar[1:] for bar in bars if bar[0] == "hollow") == sorted(published)
    assert len(published) == 20


def draws_flows_of_a_table_beside_the_published_ones(shown: Chromium) -> None:
    chart = "#chart-case-1-8-published"
    bars = shown.see(
        f"[...document.querySelectorAll('{chart} rect[data-value]')].map("
        "e => [e.classList[0], e.dataset.frame, Number(e.dataset.value)])"
    )
    case = next(case for case in PLAN.cases if case.key == "1.8")
    keys = {job.key for job in case.jobs}
    measured = [[one.frame, one.pps / 1e6] for one in RESULTS if one.job in keys and one.goal_loss_ratio == 0]
    assert len(measured) == 24
    assert sorted(bar[1:] for bar in bars if bar[0] == "bar") == sorted(measured)
    published = [[row.frame, (row.pps or 0) / 1e6] for row in published_for(["white-paper 1.8"])]
    assert sorted(bar[1:] for bar in bars if bar[0] == "hollow") == sorted(published)
    work = [
        each
        for one in RECORDS
        if isinstance(one, Trial) and one.job in keys and one.evidence
        for each in one.evidence.work
    ]
    packets = sum(each.packets for each in work)
    found = f"All {packets:,} packets that dl3d-flow received in the trials of this case had a flow in its flow table."
    assert [text for text in _texts(shown, "p.note") if "flow table" in text] == [found]
    assert all(cell != "–" for cell in _texts(shown, "#case-1-8-published td[data-col=mpps]"))


def draws_published_figures_of_cases_that_cannot_be_run_here(shown: Chromium) -> None:
    assert _texts(shown, "#chart-case-2-6-published figcaption")[0].startswith("Figure")
    assert shown.see("document.querySelectorAll('#chart-case-2-6-published rect.hollow').length") >= 54


def reports_what_differs_from_the_published_measurement(shown: Chromium) -> None:
    assert "DUT-9 E5-2690v3" in _texts(shown, "#same-differs td[data-col=as_published]")
    assert any(text.startswith("AMD EPYC") for text in _texts(shown, "#same-differs td[data-col=here]"))


def shows_a_value_while_the_pointer_is_at_it(shown: Chromium) -> None:
    tip = f"{CHART} .p .tip"
    assert not _is_drawn(shown, tip)
    shown.point_at(f"{CHART} .p rect")
    assert _is_drawn(shown, tip)
    assert f"{STRICT[0].pps / 1e6:,.3f} Mpps" in _texts(shown, tip)[0]


def switches_a_series_off_and_on(shown: Chromium) -> None:
    bars = [f"{CHART} .s0 rect", f"{CHART} .s1 rect"]
    shown.click(f"{CHART} .k0")
    assert [_is_drawn(shown, bar) for bar in bars] == [False, True]
    shown.click(f"{CHART} .k0")
    assert [_is_drawn(shown, bar) for bar in bars] == [True, True]


def _bars(saved: Element) -> list[str]:
    return [rect.attrib["height"] for rect in saved.iter(f"{SVG}rect") if "height" in rect.attrib]


def saves_a_chart_with_its_legend_as_a_file(shown: Chromium) -> None:
    saved = fromstring(shown.saved_by(f"{CHART} .save"))  # noqa: S314 our own
    heights = shown.see(
        f"[...document.querySelectorAll('{CHART} rect[data-value]')].map(e => e.getAttribute('height'))"
    )
    assert [height for height in _bars(saved) if height in heights] == heights
    texts = [text.text for text in saved.iter(f"{SVG}text")]
    assert "published: 6 GiB" in texts
    assert "huge pages 6 GiB" in texts
    assert not [a for a in saved.iter() if "href" in a.attrib or a.tag == "a"]


def saves_a_table_as_csv(shown: Chromium) -> None:
    saved = shown.saved_by(".block:has(> .table > #case-1-1-results) a[download]").decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(saved)))
    exact = [row for row in rows if row["Goal"] == "zero loss" and "–" not in row["Throughput (Mpps)"]]
    wanted = [one for one in STRICT if not one.noise]
    assert [float(row["Throughput (Mpps)"]) for row in exact] == pytest.approx(
        [one.pps / 1e6 for one in wanted], abs=0.0005
    )
    assert len(rows) == len(OF_FIRST)


def marks_a_whole_table_with_one_click(shown: Chromium) -> None:
    shown.click(".block:has(> .table > #cases) .pick")
    shown.click("#cases td[data-col=outcome]")
    marked = shown.see("getSelection().toString()")
    assert all(case.key in marked for case in PLAN.cases)
    shown.click(".block:has(> .table > #cases) .pick")


def gives_a_range_where_the_machine_was_noisy(shown: Chromium) -> None:
    noisy = next(one for one in OF_FIRST if one.noise and one.interval_pps)
    assert noisy.interval_pps
    low, high = (f"{pps / 1e6:.3f}" for pps in noisy.interval_pps)
    assert f"{low}–{high}" in _texts(shown, "#case-1-1-results tr.noisy td[data-col=mpps]")
    assert any("stolen by the hypervisor" in text for text in _texts(shown, "#section-cases .note"))


def leads_from_a_figure_to_the_lines_of_its_trials(shown: Chromium) -> None:
    result = next(one for one in STRICT if one.frame == "66")
    wanted = [n for n, one in enumerate(RECORDS, 1) if isinstance(one, Trial) and one.job == result.job]
    shown.click("#case-1-1-results td[data-col=lines] a")
    assert [int(line) for line in _texts(shown, "tbody:target td:first-child")] == wanted
    assert shown.see(f"document.querySelector('{CHART} .p a').getAttribute('href')") == shown.see("location.hash")


def follows_the_system_until_the_reader_chooses(shown: Chromium) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    shown.prefer("dark")
    dark = shown.see(paper)
    shown.prefer("light")
    assert (dark, shown.see(paper)) == ("rgb(20, 24, 30)", "rgb(255, 255, 255)")
    shown.click("#theme-dark")
    assert shown.see(paper) == dark
    shown.click("#theme-system")


def names_the_job_without_a_result(shown: Chromium) -> None:
    assert _texts(shown, "#skipped td[data-col=reason]")[0].startswith("Open vSwitch did not forward")


def loads_nothing(shown: Chromium) -> None:
    assert shown.see("performance.getEntriesByType('resource').length") == 0


def prints_light_and_without_its_tools(shown: Chromium, tmp_path: Path) -> None:
    shown.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n") + 1 > 10


def _number(text: str) -> float:
    return float(text.removeprefix("≥ ").replace(",", ""))


SHORT = {
    "en": "More frames came back from a device than in the generator's self-test",
    "zh": "从设备收到的速率高于发生器自测所得的上限",
}


@pytest.mark.parametrize("language", Language)
def reports_where_the_tester_did_more_than_it_had_proved(language: Language, tmp_path: Path) -> None:
    maker, sizes = Maker(), ("64", "512")
    results = [maker.result(size, pps) for size, pps in zip(sizes, (45e6, 8e6), strict=True)]
    made = tmp_path / "report.html"
    made.write_text(page([proof(maker, sizes), *results], language, AT), encoding="utf-8")
    with chromium_at(made, tmp_path) as shown:
        assert _texts(shown, "#results td[data-col=of_ceiling]") == ["≤ 100.0", "45.5"]
        assert _texts(shown, "#proof td[data-col=best_share]") == ["≤ 100.0", "45.5"]
        assert [text[:1] for text in _texts(shown, "#proof td[data-col=ceiling]")] == ["≥", "1"]
        assert sum(SHORT[language].lower() in note.lower() for note in _texts(shown, "p.note")) == 2


def _column(shown: Chromium, table: str, column: str) -> list[float]:
    return [_number(text) for text in _texts(shown, f"#{table} td[data-col={column}]")]


def shows_the_result_of_each_test_as_it_was_recorded(tmp_path: Path) -> None:
    records = every_test(Maker(), campaign(Maker()))
    with chromium_at(_written(tmp_path, records), tmp_path) as shown:
        lost = [point.loss_ratio * 100 for one in records if isinstance(one, FrameLoss) for point in one.points]
        assert _column(shown, "frame_loss", "ratio") == pytest.approx(lost, abs=0.0001)
        bursts = [one.frames for one in records if isinstance(one, BackToBack)]
        assert _column(shown, "back_to_back", "burst") == bursts
        means = [sum(one.seconds) / 3 * 1e3 for one in records if isinstance(one, Recovery)]
        assert _column(shown, "recovery", "mean_time") == pytest.approx(means, abs=0.01)
        most = [max(one.seconds) * 1e3 for one in records if isinstance(one, Reset)]
        assert _column(shown, "reset", "longest") == pytest.approx(most, abs=0.01)
        rates = [one.most_pps / 1e6 for one in records if isinstance(one, Forwarding)]
        assert _column(shown, "forwarding", "mfr") == pytest.approx(rates, abs=0.0005)
        ratios = [one.ratio for one in records if isinstance(one, Versus)]
        assert _column(shown, "versus", "ratio_of") == ratios
        ceilings = [point.ceiling_pps / 1e6 for one in records if isinstance(one, Proof) for point in one.points]
        assert _column(shown, "proof", "ceiling") == pytest.approx(ceilings, abs=0.0005)
        marks = shown.see(
            "[...document.querySelectorAll('#chart-timelines .loss[data-value]')].map(e => e.dataset.value)"
        )
        assert marks == ["21000", "9000"]
