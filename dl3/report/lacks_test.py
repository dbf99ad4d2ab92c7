"""What a machine lacked, in a report."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from xml.etree.ElementTree import Element

import pytest

import dl3.host.checks
from dl3.host.finding import checks
from dl3.report.lacks import CHINESE, ENGLISH, lacks_section
from dl3.report.results import Results
from dl3.report.texts import words_in
from dl3.report.words import Language

EN, ZH = words_in(Language.EN), words_in(Language.ZH)
ISOLATION = {"check": "no_isolation", "severity": "loss", "what": "no CPU is isolated"}
WORD = {"check": "misspelt_words", "severity": "blocker", "what": "isolCPUs=2 has no effect"}


def _results(*facts: dict[str, object]) -> Results:
    return cast(Results, SimpleNamespace(records=[SimpleNamespace(facts=one) for one in facts]))


def _rows(pieces: list[Element]) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row.iter("td")] for piece in pieces for row in piece.iter("tr")][1:]


def shows_each_finding_once_worst_first_with_its_probable_cost() -> None:
    rows = _rows(lacks_section(_results({"findings": [ISOLATION]}, {"findings": [ISOLATION, WORD]}), EN))
    assert [row[:2] for row in rows] == [["blocker", WORD["what"]], ["loss", ISOLATION["what"]]]
    assert rows[1][2].startswith("Any thread may take the core of a worker. At 10 Gbit/s")
    assert _rows(lacks_section(_results({"findings": [ISOLATION]}), ZH))[0][2].startswith("任何线程都可能占用")


def a_machine_that_lacks_nothing_says_so_and_older_records_say_nothing() -> None:
    (piece,) = lacks_section(_results({"findings": []}), EN)
    assert piece.text == "dl3 host found nothing that this machine lacks."
    assert lacks_section(_results({"kernel": "6.1"}), EN) == []


@pytest.mark.parametrize("value", [7, "x", [1], [{"check": 1}], [{"check": "a", "severity": "loss"}], [None]])
def what_is_no_finding_is_left_out(value: object) -> None:
    assert _rows(lacks_section(_results({"findings": value}), EN)) == []


def a_finding_of_a_newer_version_is_shown_without_cost() -> None:
    newer = {"check": "newer", "severity": "worse", "what": "something"}
    assert _rows(lacks_section(_results({"findings": [newer]}), EN)) == [
        ["worse", "something", "unknown to this version"]
    ]


def each_check_that_finds_faults_has_a_cost() -> None:
    folder = Path(dl3.host.checks.__path__[0])
    severe = re.compile(r"Severity\.(BLOCKER|LOSS|SPEED)")
    faulty = {name for name in checks() if severe.search((folder / f"{name}.py").read_text(encoding="utf-8"))}
    assert len(faulty) > 20
    assert {f"cost.{name}" for name in faulty} == {key for key in ENGLISH if key.startswith("cost.")}
    assert ENGLISH.keys() == CHINESE.keys()
