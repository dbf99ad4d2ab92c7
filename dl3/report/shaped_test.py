"""The section about shaping says what the results say, in both languages."""

from xml.etree.ElementTree import Element

import pytest
from harness.records import Maker, campaign
from harness.shapings import shaping

from dl3.report.page import page
from dl3.report.results import gather
from dl3.report.shaped import shaping_section, shaping_sentences
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def _cells(table: Element) -> list[dict[str, str]]:
    return [{cell.attrib["data-col"]: "".join(cell.itertext()) for cell in row.iter("td")} for row in table.iter("tr")][
        1:
    ]


def _tables(*results: object) -> dict[str, list[dict[str, str]]]:
    pieces = shaping_section(gather(results), EN)  # type: ignore[arg-type]
    return {table.attrib["id"]: _cells(table) for piece in pieces for table in piece.iter("table")}


def each_result_has_a_row_and_its_windows_and_classes() -> None:
    tables = _tables(shaping(), shaping("tc", 64_000, rates_bps=(64_000.0,), queue="", wire="veth", silent=3))
    first, second = tables["shaping"]
    assert (first["device"], first["subscribers"], first["set_rate"]) == ("dl3d", "1,000", "1.00–4.00")
    assert (first["error_mean"], first["error_low"], first["error_high"]) == ("-0.010", "-0.400", "0.210")
    assert (first["jain"], first["shaped_burst"], first["silent"]) == ("0.99999", "4,100", "–")
    assert (second["queue"], second["set_rate"], second["silent"]) == ("unknown", "0.0640", "3")
    assert [(row["window"], row["lowest_rate"], row["highest_rate"]) for row in tables["shaping-windows"][:2]] == [
        ("100", "98.0", "103.4"),
        ("1,000", "99.8", "100.3"),
    ]
    strict, rest, *_ = tables["shaping-delays"]
    assert (strict["shaped_class"], strict["class_share"], strict["p50"]) == ("strict, DSCP 46", "20", "9.00")
    assert rest["shaped_class"] == "rest, DSCP 0"


def a_later_result_replaces_an_earlier_one() -> None:
    (row,) = _tables(shaping(jain=0.5), shaping(jain=1.0))["shaping"]
    assert row["jain"] == "1.00000"


def a_report_without_shaping_has_no_section() -> None:
    assert shaping_section(gather(campaign(Maker())), EN) == []


@pytest.mark.parametrize("language", Language)
def the_page_begins_with_the_result(language: Language) -> None:
    trial = Maker().trial("1024", 1e5, test="shaping")
    made = page([trial, shaping()], language, "2026-11-21T23:10:00+00:00")
    sentence = shaping_sentences(gather([shaping()]), words_in(language))[0]
    assert sentence in made
    assert 'id="section-shaping"' in made
    assert {Language.EN: "the worst -0.40 %", Language.ZH: "最差 -0.40 %"}[language] in made
