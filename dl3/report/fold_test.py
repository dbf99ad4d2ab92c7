"""What several parts have in common is shown once."""

import re
from xml.etree.ElementTree import Element

import pytest
from harness.campaigns import white_paper
from harness.records import Maker

from dl3.model.campaign import Skipped
from dl3.report.fold import without_equal_notes, without_equal_reasons
from dl3.report.markup import tag
from dl3.report.page import page
from dl3.report.texts import words_in
from dl3.report.words import Language

WORDS = words_in(Language.EN)


def absent(name: str, reason: str) -> list[Element]:
    return [tag("h3", name), tag("p", reason, class_="absent")]


def texts(pieces: list[Element]) -> list[str]:
    return ["".join(piece.itertext()) for piece in pieces]


def shows_a_note_of_several_cases_once_with_their_names() -> None:
    parts = [(name, [tag("h3", name), tag("p", note, class_="note")]) for name, note in zip("abc", "xyx", strict=True)]
    common, rest = without_equal_notes(parts, WORDS)
    assert texts(common) == ["Cases a, c: x"]
    assert [texts(pieces) for pieces in rest] == [["a"], ["b", "y"], ["c"]]


def gives_one_reason_under_the_headings_of_cases_in_a_row() -> None:
    found = without_equal_reasons([absent("a", "x"), absent("b", "x"), absent("c", "y"), absent("d", "x")])
    assert [texts(pieces) for pieces in found] == [["a"], ["b", "x"], ["c", "y"], ["d", "x"]]


@pytest.mark.parametrize("language", Language)
def a_campaign_names_its_machine_once(language: Language) -> None:
    text = page(white_paper(), language, "now")
    cells = re.findall(r'<td data-col="here">(.*?)</td>', text)
    assert cells.count("memif") == 1
    assert text.count('id="same-differs"') == 1
    assert '<details open="" class="same">' in text, "which is printed, too"
    assert len(re.findall('href="#same-differs"', text)) > 5
    note = words_in(language)("published.note")
    assert text.count(note) == 1


def jobs_that_failed_alike_are_one_row() -> None:
    skipped = [
        Skipped(at="t", campaign="c", job=f"|box||throughput|{frame}", reason="no result: the box is off")
        for frame in ("64", "128", "256", "512", "1024")
    ]
    text = page([Maker().result("64", 1e6), *skipped], Language.EN, "now")
    assert text.count('<td data-col="reason">no result: the box is off</td>') == 1
    assert "<summary>5 jobs</summary>" in text
    assert ">2–6<" in text
