"""The comparison of two campaigns on the page: a sentence, the ratios, and a table of all judged figures."""

from xml.etree.ElementTree import Element

from dl3.report.chart import Drawing
from dl3.report.compare import Change, Comparison
from dl3.report.figure import figure
from dl3.report.figure_words import at_text, variant_text
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.measures import USUAL_SPREAD, Figure
from dl3.report.ratios import Ratio, draw_ratios
from dl3.report.units import NOTHING, micros, mpps, number, percent, significant
from dl3.report.words import Words

CHANGES = (
    Column("device"),
    Column("parameters", is_optional=True),
    Column("frame"),
    Column("figure"),
    Column("at_what"),
    Column("before", "", True),
    Column("after_it", "", True),
    Column("unit_of"),
    Column("change", "%", True),
    Column("basis"),
    Column("verdict"),
    Column("lines"),
)
CLASSES = {"better": "c2", "worse": "c1"}
N_DRAWN = 40
ORDER = ("worse", "missing", "unclear", "better", "new", "same")


def shown(found: Figure | None) -> str:
    """A figure in its display unit, with ≥ if the device may do more."""
    if found is None:
        return NOTHING
    return f"≥ {in_unit(found)}" if found.is_at_least else in_unit(found)


def in_unit(found: Figure) -> str:
    """The value in its display unit."""
    if found.unit == "packet/s":
        return mpps(found.value)
    if found.unit == "ns":
        return micros(found.value)
    return number(found.value * 1e3, 3) if found.unit == "s" else significant(found.value)


def unit(found: Figure) -> str:
    """The unit that `shown` uses."""
    return {"packet/s": "Mpps", "ns": "µs", "s": "ms"}.get(found.unit, "")


def bound(change: Change) -> str:
    """The prefix of a ratio if one of its figures is a bound."""
    if change.new and change.new.is_at_least:
        return "≥ "
    return "≤ " if change.old and change.old.is_at_least else ""


def change_text(change: Change, decimals: int) -> str:
    """The change in percent; with ≥ or ≤ if one of the figures is a bound."""
    return NOTHING if change.ratio is None else f"{bound(change)}{(change.ratio - 1) * 100:+.{decimals}f}"


def verdict_text(change: Change, words: Words) -> str:
    """The verdict, and whether both are bounds, or at which loads they were measured."""
    verdict = words(f"change.{change.verdict}")
    if change.are_bounds:
        return words("change.bounds", verdict=verdict)
    if loads := change.loads_pps:
        return words("change.loads", verdict=verdict, old=mpps(loads[0]), new=mpps(loads[1]))
    return verdict


def change_row(change: Change, words: Words) -> Row:
    """One figure, before and after."""
    of = change.figure
    cells = (
        of.dut,
        variant_text(of, words) or NOTHING,
        words.short_frame(of.frame),
        words.name("figure", of.name),
        at_text(of, words) or NOTHING,
        shown(change.old),
        shown(change.new),
        unit(of),
        change_text(change, 2),
        words(f"basis.{of.basis}"),
        verdict_text(change, words),
        of.lines if change.new else NOTHING,
    )
    return Row(cells, change.verdict)


def ordered(comparison: Comparison) -> list[Change]:
    """The judged figures, those that got worse first."""
    judged = [change for change in comparison.changes if change.is_judged]
    return sorted(judged, key=lambda change: ORDER.index(change.verdict))


def comparison_text(comparison: Comparison, words: Words) -> str:
    """The outcome in one sentence."""
    counts = comparison.counts()
    numbers = {key: counts[key] for key in ("better", "worse", "same", "unclear", "missing")}
    outcome = "worse" if comparison.is_worse else "better" if counts["better"] else "same"
    names = {"old": comparison.old_name, "new": comparison.new_name}
    return words(f"comparison.{outcome}", **names, **numbers, new_ones=counts["new"])


def ratio_of(change: Change, words: Words) -> Ratio | None:
    """A row of the chart; None if there is no ratio."""
    old, new, ratio = change.old, change.new, change.ratio
    if not old or not new or ratio is None or old.low <= 0:
        return None
    what = at_text(new, words) or words.name("figure", new.name)
    parts = (new.case, words.short_frame(new.frame), what, new.dut, variant_text(new, words))
    name = words("list.parts").join(filter(None, parts))
    low, high = max(new.low, 0) / old.high, new.high / old.low
    return Ratio(name, ratio, low, high, CLASSES.get(change.verdict, "c4"), bound=bound(change))


def comparison_section(comparison: Comparison, words: Words) -> list[Element]:
    """The whole section."""
    changes = ordered(comparison)
    rows = [change_row(change, words) for change in changes]
    found = [ratio for change in changes if (ratio := ratio_of(change, words)) is not None]
    title, note = words("comparison.title"), words("comparison.note", spread=percent(USUAL_SPREAD, 0))
    picture = draw_ratios(title, words("comparison.axis"), found[:N_DRAWN])
    drawn = [figure(None, "comparison", Drawing(title, [picture]), words)] if picture is not None else []
    return [*drawn, grid("comparison", CHANGES, rows, words), tag("p", note, class_="note")]
