"""The published figures in the package, and their conversions."""

import pytest

from dl3.report.published import SOURCES, published_for, rows_for, same, table
from dl3.report.quoted import QUOTED


def holds_all_sources() -> None:
    assert len({row.source for row in table()}) == 5
    assert len(table()) > 400


def has_chinese_for_all_that_is_quoted() -> None:
    rows = published_for(SOURCES)
    texts = {text for row in rows for text in (row.source, row.scenario, row.variable, row.unit, row.note) if text}
    assert texts <= QUOTED.keys()
    assert {row.value for row in rows if row.variable == "NUMA placement"} <= QUOTED.keys()


def makes_percent_of_two_ports_into_frames_a_second() -> None:
    row = next(row for row in published_for(["white-paper 1.1"]) if (row.value, row.frame) == ("1 GiB", "66"))
    assert row.figure == 74.138
    assert row.pps == pytest.approx(0.74138 * 20e9 / (86 * 8))


def takes_percent_of_all_the_traffic_that_a_case_offers() -> None:
    bits = {row.value: row.line_bps for row in published_for(["white-paper 1.7", "white-paper 2.6"])}
    assert (bits["120G"], bits["3+2"], bits["1+0"]) == (120e9, 100e9, 20e9)


def keeps_what_was_forwarded_and_not_what_was_offered() -> None:
    found = published_for(["thesis 4.7"])
    assert {row.metric for row in found} == {"received rate"}
    assert [row.pps for row in found] == [row.figure for row in found]


def selects_a_scenario_of_a_source_without_numbers() -> None:
    assert {row.figure for row in published_for(["notes kernel L3"])} == {2e6, 10e6, 12e6}


def finds_rows_of_each_source_by_its_name() -> None:
    assert all(rows_for(source) for source in SOURCES)


def has_all_cases_of_the_white_paper_except_the_one_that_another_prints() -> None:
    cases = [f"1.{n}" for n in range(1, 9)] + [f"2.{n}" for n in (1, 2, 3, 4, 6, 7)] + [f"3.{n}" for n in range(1, 5)]
    assert all(published_for([f"white-paper {case}"]) for case in cases)


@pytest.mark.parametrize(
    ("published", "measured", "wanted"),
    [("1 GiB", "1GiB", True), ("2x20000", "2x20,000", True), ("1,2,9", "1,2,9", True), ("1", "10", False)],
)
def recognises_the_same_value_however_it_is_written(published: str, measured: str, wanted: bool) -> None:
    assert same(published, [measured]) == wanted
