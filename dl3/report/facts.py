"""The facts about machine and build that all figures depend on, as one table over all records."""

import re
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from dl3.report.lacks import FINDINGS
from dl3.report.markup import tag
from dl3.report.results import Results
from dl3.report.words import Words

N_SHOWN = 6  # different values of one fact
DEEPEST = 6
MOST_DIGITS = 10**15
CACHE = re.compile(r"(?P<kib>\d+)K for cpus (?P<cpus>\S+)")  # the format of records


def fact_text(value: object, words: Words, depth: int = 0) -> str:
    """A fact for display: lists and tables on one line."""
    if isinstance(value, bool):
        return words("fact.yes" if value else "fact.no")
    if isinstance(value, Mapping) and depth < DEEPEST:
        pairs = (pair(str(key), fact_text(inner, words, depth + 1), words) for key, inner in value.items())
        return words("list.semicolon").join(pairs) or words("fact.none")
    if isinstance(value, list | tuple) and depth < DEEPEST:
        return words("list.semicolon").join(fact_text(inner, words, depth + 1) for inner in value) or words("fact.none")
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) < MOST_DIGITS else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < MOST_DIGITS else hex(value)
    if isinstance(value, str) and (cache := CACHE.fullmatch(value)):
        return words("fact.cache", kib=f"{int(cache['kib']):,}", cpus=cache["cpus"])
    return words("fact.unknown") if value is None or value == "" else str(value)


def label(key: str, words: Words) -> str:
    """The label of a fact."""
    named = words.name("fact", key)
    return key.replace("_", " ") if named == key and "." not in key else named  # 'net.ipv4.ip_forward' is a name


def pair(key: str, value: str, words: Words) -> str:
    """A fact after its label; 'DPDK: 22.11', although the program reports 'DPDK 22.11'."""
    name = label(key, words)
    return words("fact.pair", name=name, value=value.removeprefix(f"{name} "))


def is_number(value: object) -> bool:
    """Whether a value can be part of a range."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def parts_of(values: Sequence[object]) -> dict[str, list[object]]:
    """The values of each key, over several tables."""
    found: dict[str, list[object]] = {}
    for value in values:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                found.setdefault(str(key), []).append(inner)
    return found


def together(values: Sequence[object], words: Words, depth: int = 0) -> str:
    """One text for the values that a fact has in several records: a range of numbers, or each once."""
    numbers = [value for value in values if isinstance(value, int | float) and is_number(value)]
    if len(numbers) == len(values) and min(numbers) != max(numbers):
        low, high = fact_text(min(numbers), words), fact_text(max(numbers), words)
        return words("fact.range", low=low, high=high)
    parts = parts_of(values) if all(isinstance(value, Mapping) for value in values) and depth < DEEPEST else {}
    if parts:
        pairs = (pair(key, together(inner, words, depth + 1), words) for key, inner in parts.items())
        return words("list.semicolon").join(pairs)
    texts = list(dict.fromkeys(fact_text(value, words) for value in values))
    more = [words("fact.more", n=len(texts) - N_SHOWN)] if len(texts) > N_SHOWN else []
    return " | ".join(texts[:N_SHOWN] + more)


def facts_table(results: Results, words: Words) -> Element:
    """All facts of all records."""
    found: dict[str, list[object]] = {}
    for record in results.records:
        for key, value in record.facts.items():
            if key == FINDINGS:
                continue  # they have a table of their own
            found.setdefault(key, []).append(value)
    if not found:
        return tag("p", words("fact.missing"), class_="note")
    rows = [
        tag("tr", tag("th", label(key, words), scope="row"), tag("td", together(values, words), data_fact=key))
        for key, values in found.items()
    ]
    return tag("table", tag("tbody", *rows), id="facts")
