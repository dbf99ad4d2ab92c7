"""One case of a campaign: its charts and tables, or why it is not applicable here, beside what was published of it."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.model.campaign import Case
from dl3.report.beside import Beside, beside
from dl3.report.chart import Scene
from dl3.report.facts import fact_text
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.plan_tables import case_anchor, said
from dl3.report.published import Published
from dl3.report.units import NOTHING, mpps
from dl3.report.words import Words

BESIDE = (
    Column("value"),
    Column("frame"),
    Column("published", "", True),
    Column("published_unit"),
    Column("published_mpps", "Mpps", True),
    Column("mpps", "Mpps", True, is_optional=True),
    Column("note", is_optional=True),
)
DIFFERENCES = (Column("what"), Column("as_published"), Column("here"))


def beside_row(row: Published, found: Beside, scene: Scene, words: Words) -> Row:
    """A published figure, and what was measured for the same."""
    measured = found.measured(row)
    own = mpps(measured.pps) if measured else NOTHING
    cells = (row.value, words.short_frame(row.frame), f"{row.figure:,g}", row.unit, mpps(row.pps), own, row.note)
    return Row(cells, link=scene.groups.link(measured) if measured else None)


def each(values: Sequence[str]) -> str:
    """Texts, each once."""
    return "; ".join(dict.fromkeys(value for value in values if value)) or NOTHING


def here_facts(scene: Scene, words: Words) -> dict[str, str]:
    """What is known of this machine, as far as it stands beside a published machine."""
    results = scene.part.results
    records = [*results.searches, *results.others, *results.trials]
    facts = records[0].facts if records else {}
    lab = facts.get("lab")
    wire = lab.get("wire") if isinstance(lab, dict) else None
    cards = facts.get("network_devices")
    return {
        "scenario": fact_text(wire, words) if wire else NOTHING,
        "machine": fact_text(facts.get("cpu_model"), words),
        "nic": fact_text(cards, words) if cards else words("beside.no_nic"),
        "device": each([record.dut for record in records]),
    }


def differences(found: Beside, scene: Scene, words: Words) -> Element:
    """What differs between the published measurements and these."""
    here, rows = here_facts(scene, words), found.published
    pairs = (
        ("source", each([row.source for row in rows]), words("beside.here")),
        ("scenario", each([row.scenario for row in rows]), here["scenario"]),
        ("machine", each([row.dut for row in rows]), here["machine"]),
        ("nic", words("beside.line") if rows[0].unit.startswith("percent") else NOTHING, here["nic"]),
        ("device", NOTHING, here["device"]),
        ("conditions", each([row.note for row in rows]), NOTHING),
        ("unit", each([row.unit for row in rows]), "Mpps"),
    )
    name = f"{prefix_of(scene.part.case)}differs"
    return grid(name, DIFFERENCES, [Row((words(f"beside.{key}"), *cells)) for key, *cells in pairs], words)


def prefix_of(case: Case | None) -> str:
    """What the names of a case's charts and tables begin with."""
    return f"{case_anchor(case)}-" if case else ""


def beside_section(scene: Scene, words: Words) -> list[Element]:
    """What differs, and the published figures themselves."""
    found = beside(scene.part)
    if found is None:
        return []
    rows = [beside_row(row, found, scene, words) for row in found.published]
    table = grid(f"{prefix_of(scene.part.case)}published", BESIDE, rows, words)
    inner = tag("details", tag("summary", words("beside.figures", n=len(rows))), table)
    return [differences(found, scene, words), inner] if scene.part.results.searches else [inner]


def left_out(case: Case, words: Words) -> list[Element]:
    """Values of a case's parameters that this machine cannot do."""
    rows = [
        words("case.left_out", dut=one.dut, values=values_of(one.parameters, words), reason=said(one.reason, words))
        for one in case.left_out
    ]
    return [tag("ul", *(tag("li", row) for row in rows), class_="plain")] if rows else []


def values_of(parameters: dict[str, str], words: Words) -> str:
    """Parameters in one line."""
    found = (words("parameter", name=words.name("parameter", k), value=v) for k, v in parameters.items())
    return words("list.comma").join(found)


def case_head(case: Case, words: Words) -> list[Element]:
    """The heading of a case, and why it is not applicable where it is not."""
    number = f"{case.key}  " if case.key[:1].isdigit() else ""
    heading = tag("h3", f"{number}{said(case.title, words)}", id=case_anchor(case))
    if case.jobs:
        return [heading]
    reason = said(case.reason, words) if case.reason else words("case.nothing")
    return [heading, tag("p", reason, class_="absent")]
