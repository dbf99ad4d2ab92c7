"""The report in a browser: the command writes a page, Chromium renders it, and it matches the records."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from harness.browser import Node, Ruled, chromium, ruled
from harness.browser import shown as shown_by_chromium
from harness.records import Maker, campaign

from dl3.model.trial import Throughput, Trial

TOP = Path(__file__).resolve().parent.parent
A4_HEIGHT_PX = (297 - 15 - 16) * 96 / 25.4  # without the margins
A4_WIDTH_PX = (210 - 14 - 14) * 96 / 25.4


def _record(folder: Path, records: Sequence[Trial | Throughput]) -> Path:
    path = folder / "record.jsonl"
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in records), encoding="utf-8")
    return path


def _report(record: Path, *options: str) -> Path:
    command = [sys.executable, "-m", "dl3", "report", str(record), *options]
    done = subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True, timeout=120)
    assert str(record.with_suffix(".html")) in done.stdout
    return record.with_suffix(".html")


def never_writes_over_a_record_nor_makes_folders(tmp_path: Path) -> None:
    record = _record(tmp_path, campaign(Maker()))
    kept = record.read_bytes()
    folder, nowhere = tmp_path / "folder", tmp_path / "none" / "x.html"
    folder.mkdir()
    outputs = ((record, "is one of the records"), (nowhere, "cannot be written"), (folder, "cannot be written"))
    for output, words in outputs:
        command = [sys.executable, "-m", "dl3", "report", str(record), "--output", str(output)]
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=120)
        assert done.returncode in (1, 2)
        assert words in done.stderr
    assert record.read_bytes() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "record.jsonl"]


def _rows(page: Node, table: str) -> list[dict[str, str]]:
    """A table's rows, each cell by its column key."""
    body = next(next(page.all("table", id=table)).all("tbody"))
    return [{cell.attributes["data-col"]: cell.text for cell in row.all("td")} for row in body.all("tr")]


def _number(text: str) -> float:
    return float(text.removeprefix("≥ ").replace(",", ""))


MAKER = Maker()
RECORDS = campaign(MAKER)
RESULTS = [record for record in RECORDS if isinstance(record, Throughput)]
TRIALS = [record for record in RECORDS if isinstance(record, Trial)]
LIMITS = {
    "en": {"dut": "the device", "line": "the line rate", "generator": "the generator"},
    "zh": {"dut": "被测设备", "line": "线速", "generator": "发生器"},
}


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def page(language: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _report(_record(tmp_path_factory.mktemp("report"), RECORDS), "--lang", language)


@pytest.fixture(scope="module")
def shown(page: Path) -> Node:
    return shown_by_chromium(page)


def shows_each_result_with_what_limited_it(shown: Node, language: str) -> None:
    rows = _rows(shown, "results")
    assert len(rows) == len(RESULTS)
    for row, result in zip(rows, RESULTS, strict=True):
        assert row["device"] == "dl3d"
        assert row["limit"] == LIMITS[language][result.limited_by]
        assert _number(row["mpps"]) == pytest.approx(result.pps / 1e6, abs=0.0005)
        assert _number(row["gbps"]) == pytest.approx(result.l1_bps / 1e9, abs=0.0005)
        assert result.line_share is not None
        assert _number(row["share"]) == pytest.approx(result.line_share * 100, abs=0.005)
        assert row["mpps"].startswith("≥ ") == (result.limited_by == "generator")


def draws_each_result_as_a_bar_as_high_as_its_rate(shown: Node) -> None:
    of: dict[str, Callable[[Throughput], float]] = {
        "mpps": lambda result: result.pps / 1e6,
        "gbps": lambda result: result.l1_bps / 1e9,
        "line_rate": lambda result: (result.line_share or 0) * 100,
    }
    for chart, value in of.items():
        figure = next(shown.all("figure", id=f"chart-throughput_{chart}"))
        bars = [bar for bar in figure.all("rect") if "data-value" in bar.attributes]
        assert [bar.attributes["data-frame"] for bar in bars] == [result.frame for result in RESULTS]
        assert [float(b.attributes["data-value"]) for b in bars] == pytest.approx([value(a) for a in RESULTS])
        heights = [float(bar.attributes["height"]) / float(bar.attributes["data-value"]) for bar in bars]
        assert max(heights) / min(heights) < 1.02, "the axis begins at zero"
        assert [b.attributes["data-bound"] for b in bars].count("≥") == 1


def draws_latency_over_load(shown: Node) -> None:
    figure = next(shown.all("figure", id="chart-latency_load"))
    latencies = [trial for trial in TRIALS if trial.test == "latency"]
    found = sorted(
        (float(dot.attributes["data-x"]), float(dot.attributes["data-value"]))
        for shape in ("circle", "polygon")
        for dot in figure.all(shape)
        if dot.attributes.get("data-series") == "p99_9"
    )
    assert found == sorted(((trial.load or 0) * 100, trial.latency.p99_9) for trial in latencies)
    rows = _rows(shown, "latency")
    assert len(rows) == len(latencies)
    assert sorted(_number(row["max"]) for row in rows) == pytest.approx(
        sorted(trial.latency.max / 1e3 for trial in latencies), abs=0.005
    )


def shows_loss_by_place_and_the_accounting(shown: Node) -> None:
    valid = [trial for trial in TRIALS if not trial.invalid]
    lost = sum(trial.account.lost for trial in valid)
    assert sum(_number(row["lost"]) for row in _rows(shown, "loss")) == lost
    sent = sum(trial.account.sent for trial in valid)
    notes = [note.text for note in shown.all("p", class_="note")]
    assert any(f"{sent:,}" in note and f"{sent - lost:,}" in note and f"{lost:,}" in note for note in notes)


def names_the_invalid_trial_and_all_others(shown: Node) -> None:
    (row,) = _rows(shown, "invalid")
    assert "65,012" in row["reasons"]
    table = next(shown.all("table", id="trials"))
    lines = {row.attributes["id"] for row in table.all("tr") if "id" in row.attributes}
    assert lines == {f"L{n}" for n, one in enumerate(RECORDS, 1) if isinstance(one, Trial)}


def shows_the_facts(shown: Node) -> None:
    facts = next(shown.all("table", id="facts"))
    assert next(facts.all("td", data_fact="cpu_model")).text == MAKER.facts[0][1]


def asks_nobody_for_anything(page: Path) -> None:
    assert ruled(page, 1100).loaded == ()


@pytest.mark.parametrize("width", [1100, 600])
def fits_its_window(page: Path, width: int) -> None:
    found = ruled(page, width)
    assert found.page <= found.window


def keeps_the_figures_at_the_top_in_their_tiles(tmp_path: Path, language: str) -> None:
    of_range = {"noise": ("time was stolen",), "interval_pps": (100.283e6, 120.284e6)}
    record = _record(tmp_path, [MAKER.result("64", 110e6, **of_range)])
    for width in (1200, 600):
        assert ruled(_report(record, "--lang", language), width).stuck_out == ()


def _assert_words_apart(found: Ruled) -> None:
    for chart in found.charts:
        for i, word in enumerate(chart.texts):
            assert word.box.is_inside(chart.box, slack=1), word.text
            assert not [other.text for other in chart.texts[:i] if word.box.meets(other.box, slack=2)], word.text


def keeps_all_words_of_a_chart_inside_of_it_and_apart(page: Path) -> None:
    _assert_words_apart(ruled(page, 1100))


def cuts_no_chart_in_two_when_printed(page: Path) -> None:
    for figure in ruled(page, int(A4_WIDTH_PX), as_printed=True).figures:
        assert figure.bottom - figure.top < A4_HEIGHT_PX
        assert figure.right - figure.left <= A4_WIDTH_PX
    paper = page.with_suffix(".pdf")
    chromium(page, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")


def shows_a_device_named_script_as_text(tmp_path: Path) -> None:
    name = "<script>document.title = 'taken'</script>"
    maker = Maker(dut=name)
    shown = shown_by_chromium(_report(_record(tmp_path, [maker.result("64", 1e6)])))
    assert not list(shown.all("script"))
    assert _rows(shown, "results")[0]["device"] == name
    assert name in next(shown.all("title")).text


def keeps_all_whole_lines_of_a_record_that_was_cut(tmp_path: Path) -> None:
    record = _record(tmp_path, RESULTS)
    record.write_bytes(record.read_bytes()[:-40])
    shown = shown_by_chromium(_report(record))
    assert len(_rows(shown, "results")) == len(RESULTS) - 1
    assert "ignored: the line is incomplete, cut off after" in next(shown.all("main")).text


def finds_room_for_the_words_of_three_devices(tmp_path: Path, language: str) -> None:
    makers = [Maker(dut=f"device number {n}", ceiling_pps=n * 5.1e6, line_bps=25e9) for n in (1, 2, 3)]
    record = _record(tmp_path, [one for maker in makers for one in campaign(maker)])
    _assert_words_apart(ruled(_report(record, "--lang", language), 1100))
