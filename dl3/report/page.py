"""A report: one HTML page that holds all it needs and loads nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from xml.etree.ElementTree import Element

from dl3 import VERSION
from dl3.report.chart import Drawing
from dl3.report.charts import charts
from dl3.report.facts import facts_table
from dl3.report.markup import document, tag
from dl3.report.method import method
from dl3.report.results import Record, Results, gather
from dl3.report.style import STYLE
from dl3.report.summary import sentence, tiles, title, when
from dl3.report.tables import invalid_table, latency_table, loss_table, results_table, trials_table
from dl3.report.texts import words_in
from dl3.report.units import moment
from dl3.report.words import Language, Words

# Nothing may be loaded and nothing may run: the browser holds the page to it, whatever a record says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
N_ON_A_PAGE = 6  # small charts that stay together when printed
LANGUAGE_TAGS = {Language.EN: "en", Language.ZH: "zh-Hans"}


@dataclass(frozen=True)
class Section:
    """A part of the page; one without content is left out."""

    key: str
    content: Sequence[Element]


def head(text: str) -> Element:
    """What a browser has to know before it shows anything."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", text),
        tag("style", STYLE),
    )


def figure(number: int | None, name: str, drawing: Drawing, words: Words) -> Element:
    """A chart with its caption, numbered if it has a picture; several small ones stand in two columns, each named."""
    n = len(drawing.pictures)
    captions = [picture.get("aria-label") if n > 1 else None for picture in drawing.pictures]
    pictures = [
        tag("div", tag("p", caption) if caption else None, picture, class_="picture")
        for caption, picture in zip(captions, drawing.pictures, strict=True)
    ]
    text = words("figure", n=number, title=drawing.title) if number else drawing.title
    caption = tag("figcaption", text, tag("small", drawing.note))
    shown = tag("div", *pictures, class_="pictures many" if n > 1 else "pictures") if pictures else None
    return tag("figure", caption, shown, id=f"chart-{name}", class_="many" if n > N_ON_A_PAGE else None)


def figures(results: Results, words: Words) -> list[Element]:
    """All charts for which these results have something."""
    drawn = [(chart.name, chart.draw(results, words)) for chart in charts()]
    found = [(name, drawing) for name, drawing in drawn if drawing is not None]
    numbers = count(1)
    return [figure(next(numbers) if drawing.pictures else None, name, drawing, words) for name, drawing in found]


def section(part: Section, words: Words) -> Element:
    """A part with its heading."""
    return tag("section", tag("h2", words(f"section.{part.key}")), *part.content)


def sections(results: Results, words: Words) -> Iterable[Section]:
    """The parts of the page in their order."""
    return (
        Section("results", results_table(results, words)),
        Section("charts", figures(results, words)),
        Section("latency", latency_table(results, words)),
        Section("loss", loss_table(results, words)),
        Section("invalid", invalid_table(results, words)),
        Section("method", [method(results, words)]),
        Section("facts", [facts_table(results, words)]),
        Section("trials", trials_table(results, words)),
    )


def remarks(left_out: Iterable[str], words: Words) -> list[Element]:
    """What of the records could not be read: a reader has to know."""
    return [tag("p", words("left_out", text=text), class_="remark") for text in left_out]


def page(records: Iterable[Record], language: Language, made_at: str, left_out: Sequence[str] = ()) -> str:
    """The whole page; `made_at` is told in its foot, and `left_out` what could not be read of the records."""
    words, results = words_in(language), gather(records)
    text = title(results, words)
    top = tag(
        "header",
        tag("p", "D-L3", class_="mark"),
        tag("h1", text),
        tag("p", when(results, words), class_="when"),
    )
    parts = [section(part, words) for part in sections(results, words) if part.content]
    first = tag("p", sentence(results, words), class_="sentence", id="sentence")
    foot = tag("footer", words("made", version=VERSION, at=moment(made_at)))
    main = tag("main", top, first, tiles(results, words), *remarks(left_out, words), *parts, foot)
    return document(tag("html", head(text), tag("body", main), lang=LANGUAGE_TAGS[language]))
