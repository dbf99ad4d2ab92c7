"""Both languages are complete."""

import re
import string

import pytest

from dl3.report.chart import Chart
from dl3.report.charts import charts
from dl3.report.texts import words_in
from dl3.report.words import Language


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def has_each_text_in_both_languages() -> None:
    assert words_in(Language.EN).table.keys() == words_in(Language.ZH).table.keys()


def fills_the_same_places_in_both_languages() -> None:
    english, chinese = words_in(Language.EN).table, words_in(Language.ZH).table
    assert {key for key in english if places(english[key]) != places(chinese[key])} == set()


@pytest.mark.parametrize("language", Language)
def has_no_empty_text(language: Language) -> None:
    assert not [key for key, text in words_in(language).table.items() if not text.strip()]


def prints_chinese_text() -> None:
    english, chinese = words_in(Language.EN).table, words_in(Language.ZH).table
    same = {english[key] for key in english if english[key] == chinese[key]}
    assert not [text for text in same if re.search("[a-z]{4}", re.sub(r"\{\w+\}", "", text))]


@pytest.mark.parametrize("chart", charts(), ids=lambda chart: chart.name)
def begins_each_key_of_a_chart_with_its_name(chart: Chart) -> None:
    keys = [key for table in chart.words.values() for key in table]
    assert all(key.startswith(f"{chart.name}.") for key in keys)
