"""A report: one self-contained HTML page that loads nothing."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from xml.etree.ElementTree import Element

from dl3 import VERSION
from dl3.model.campaign import Case
from dl3.report.case_section import (
    Pair,
    beside_section,
    case_head,
    flow_hits,
    left_out,
    prefix_of,
    shared_pairs,
    shared_section,
)
from dl3.report.chart import Chart, Scene
from dl3.report.charts import charts
from dl3.report.compare import Comparison
from dl3.report.comparison_table import comparison_section
from dl3.report.departures import departures
from dl3.report.facts import facts_table
from dl3.report.figure import figure
from dl3.report.fold import without_equal_notes, without_equal_reasons
from dl3.report.gaps import gap_sentences
from dl3.report.global_tables import explained, proof_table, skipped_table
from dl3.report.groups import Groups
from dl3.report.lab_section import lab_section
from dl3.report.lacks import lacks_section
from dl3.report.losses_beside import losses_section
from dl3.report.markup import document, tag
from dl3.report.method import method
from dl3.report.other_tables import SHEETS, sheet_table
from dl3.report.plan_tables import plan_section
from dl3.report.results import Part, Record, Results, gather, parts
from dl3.report.shaped import shaping_section
from dl3.report.style import STYLE
from dl3.report.summary import sentences, title, when
from dl3.report.tables import invalid_table, latency_table, loss_table, result_notes, results_table
from dl3.report.texts import words_in
from dl3.report.tiles import tiles
from dl3.report.trials_table import trials_table
from dl3.report.units import moment
from dl3.report.words import Language, Words

# Nothing is loaded and no script runs: the browser enforces it, whatever a record contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
LANGUAGE_TAGS = {Language.EN: "en", Language.ZH: "zh-Hans"}
# The sections of a part of the results, each with the tables before its charts.
TOPICS = ("throughput", "latency", *(sheet.name for sheet in SHEETS))
THEMES = ("system", "light", "dark")


@dataclass(frozen=True)
class Section:
    """A section of the page; omitted if empty."""

    key: str
    content: Sequence[Element]


class Composer:
    """Assembles a page; figures are numbered in order of appearance."""

    def __init__(self, results: Results, words: Words) -> None:
        self.words = words
        self.results = results
        self.groups = Groups(results)
        self.numbers = count(1)
        self.gaps: dict[tuple[str, str], int] = {}  # the first figure of each case and topic
        self.notes: dict[str, int] = {}  # of charts of cases, with the number of the figure that shows each

    def figures(self, part: Part, topic: str) -> list[Element]:
        """The charts of a topic that have something to show."""
        scene = Scene(part, self.groups)
        wanted = [chart for chart in charts() if chart.topic == topic and (chart.is_for_cases or part.case is None)]
        return [made for chart in wanted if (made := self.drawn(chart, scene)) is not None]

    def drawn(self, chart: Chart, scene: Scene) -> Element | None:
        """One chart; None if it has nothing to show."""
        drawing = chart.draw(scene, self.words)
        if drawing is None:
            return None
        number = next(self.numbers) if drawing.pictures else None
        if scene.part.case and number and drawing.note:
            shown = self.notes.setdefault(drawing.note, number)
            drawing = drawing if shown == number else replace(drawing, note=self.words("fold.note", n=shown))
        if number:
            drawing = replace(drawing, missing=self.missing(chart.topic, scene, number))
        return figure(number, f"{prefix_of(scene.part.case)}{chart.name}", drawing, self.words)

    def missing(self, topic: str, scene: Scene, number: int) -> list[str]:
        """Which points a chart lacks, and why; further charts of the same results refer to the first."""
        first = self.gaps.setdefault((prefix_of(scene.part.case), topic), number)
        found = gap_sentences(topic, scene, self.words)
        return [self.words("gap.see", n=first)] if found and first != number else found

    def tables(self, part: Part, topic: str) -> list[Element]:
        """The tables of a topic."""
        scene, prefix = Scene(part, self.groups), prefix_of(part.case)
        if topic == "throughput":
            return results_table(scene, prefix, self.words)
        if topic == "latency":
            return latency_table(scene, prefix, self.words)
        sheet = next(sheet for sheet in SHEETS if sheet.name == topic)
        return sheet_table(sheet, scene, prefix, self.words)

    def loose(self, part: Part) -> Iterable[Section]:
        """Results that belong to no case: a section for each topic."""
        for topic in TOPICS:
            yield Section(topic, [*self.tables(part, topic), *self.figures(part, topic)])

    def case(self, case: Case, part: Part, shared: Container[Pair]) -> list[Element]:
        """A case with all of its topics, without what is shown once for several."""
        pieces = [*case_head(case, self.words), *left_out(case, self.words), *flow_hits(case, part.results, self.words)]
        for topic in TOPICS:
            pieces += [*self.figures(part, topic), *self.tables(part, topic)]
            pieces += beside_section(Scene(part, self.groups), self.words, shared) if topic == "throughput" else []
            pieces += (
                losses_section(Scene(part, self.groups), prefix_of(case), self.words) if topic == "frame_loss" else []
            )
        return pieces

    def measured(self) -> Iterable[Section]:
        """All that was measured, by case where there are any."""
        found = parts(self.results)
        for part in found:
            if part.case is None:
                yield from self.loose(part)
        yield Section("cases", self.cases([part for part in found if part.case]))

    def cases(self, found: Sequence[Part]) -> list[Element]:
        """All cases; what several of them have in common stands above them."""
        shared = shared_pairs([Scene(part, self.groups) for part in found], self.words)
        pairs = {one.of for one in shared}
        cases = [(part.case.key, self.case(part.case, part, pairs)) for part in found if part.case]
        notes, parts_of = without_equal_notes(cases, self.words)
        pieces = [piece for one in without_equal_reasons(parts_of) for piece in one]
        first = result_notes(self.results.searches, self.results, self.words) if pieces else []
        return [*first, *notes, *shared_section(shared, self.words), *pieces]

    def sections(self, comparison: Comparison | None) -> Iterable[Section]:
        """The sections of the page in order."""
        results, words, whole = self.results, self.words, Part(None, self.results)
        yield Section("comparison", comparison_section(comparison, words) if comparison else [])
        yield Section("lab", lab_section(results, words, lambda: next(self.numbers)))
        yield Section("plan", [piece for plan in results.plans for piece in plan_section(plan, self.groups, words)])
        yield from self.measured()
        yield Section("shaping", shaping_section(results, words))
        yield Section("proof", [*proof_table(results, words), *self.figures(whole, "proof")])
        yield Section("loss", [*loss_table(self.groups, words), *self.figures(whole, "loss")])
        yield Section("explained", [*explained(self.groups, words), *self.figures(whole, "explained")])
        yield Section("skipped", skipped_table(results, words))
        yield Section("invalid", invalid_table(self.groups, words))
        if results.records != results.labs:  # the terms of the method are those of trials
            yield Section("method", [method(results, words), *departures(results, words)])
        yield Section("facts", [*lacks_section(results, words), facts_table(results, words)])
        yield Section("trials", trials_table(self.groups, words))


def head(text: str) -> Element:
    """The head of the page."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", text),
        tag("style", STYLE),
    )


def theme_switch(words: Words) -> Element:
    """Light, dark, or the setting of the reader's system, without a script."""
    boxes = []
    for theme in THEMES:
        is_first = "" if theme == THEMES[0] else None
        box = tag("input", type="radio", name="theme", id=f"theme-{theme}", checked=is_first, autocomplete="off")
        boxes.append(tag("label", box, words(f"theme.{theme}")))
    return tag("div", *boxes, class_="theme")


def section(part: Section, words: Words) -> Element:
    """A section with its heading."""
    return tag("section", tag("h2", words(f"section.{part.key}")), *part.content, id=f"section-{part.key}")


def contents(found: Sequence[Section], words: Words) -> Element:
    """Links to all sections."""
    return tag("nav", *(tag("a", words(f"section.{one.key}"), href=f"#section-{one.key}") for one in found))


def remarks(left_out: Iterable[str], words: Words) -> list[Element]:
    """What could not be read of the records: the reader needs to see it."""
    return [tag("p", words("left_out", text=text), class_="remark") for text in left_out]


def page_of(
    results: Results,
    language: Language,
    made_at: str,
    left_out: Sequence[str] = (),
    comparison: Comparison | None = None,
) -> str:
    """The whole page; `made_at` appears in the footer, and `left_out` lists what could not be read of the records."""
    words = words_in(language)
    text = title(results, words)
    top = tag(
        "header",
        theme_switch(words),
        tag("p", "D-L3", class_="mark"),
        tag("h1", text),
        tag("p", when(results, words), class_="when"),
    )
    found = [part for part in Composer(results, words).sections(comparison) if part.content]
    first = [
        tag("p", one, class_="sentence", id="sentence" if n == 0 else None)
        for n, one in enumerate(sentences(results, words, comparison))
    ]
    foot = tag("footer", words("made", version=VERSION, at=moment(made_at)))
    pieces = [tiles(results, words), *remarks(left_out, words), contents(found, words)]
    main = tag("main", top, *first, *pieces, *(section(part, words) for part in found), foot)
    return document(tag("html", head(text), tag("body", main), lang=LANGUAGE_TAGS[language]))


def page(records: Iterable[Record], language: Language, made_at: str, left_out: Sequence[str] = ()) -> str:
    """The page of records, whose lines are counted."""
    return page_of(gather(records), language, made_at, left_out)
