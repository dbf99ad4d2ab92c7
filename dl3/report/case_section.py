"""One case of a campaign: its charts and tables, or why it is not applicable, and the published figures."""

from collections.abc import Container, Sequence
from xml.etree.ElementTree import Element

from dl3.model.campaign import Case, Job
from dl3.model.flow_hits import FlowHits, with_table
from dl3.model.trial import wire_of
from dl3.report.beside import Beside, beside
from dl3.report.chart import Scene
from dl3.report.facts import fact_text
from dl3.report.fold import Shared, grouped
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.plan_tables import case_anchor, said
from dl3.report.published import Published
from dl3.report.results import Results
from dl3.report.tables import bound
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
SAME = "same-differs"  # the table of what several cases have in common
GIB = 1024  # MiB
OWN_PORTS = "ports of the file"  # a wire that consists of this machine's network cards


def beside_row(row: Published, found: Beside, scene: Scene, words: Words) -> Row:
    """A published figure, and the result measured under the same conditions."""
    measured = found.measured(row)
    own = bound(measured, mpps(measured.pps), words) if measured else NOTHING
    value, unit, note = (words.quoted(text) for text in (row.value, row.unit, row.note))
    cells = (value, words.short_frame(row.frame), f"{row.figure:,g}", unit, mpps(row.pps), own, note)
    return Row(cells, link=scene.groups.link(measured) if measured else None)


def each(values: Sequence[str], words: Words) -> str:
    """Texts, each once."""
    return words("list.semicolon").join(dict.fromkeys(words.quoted(value) for value in values if value)) or NOTHING


def conditions_of(job: Job) -> dict[str, str]:
    """The conditions of a job, named as in its case if the case varies them."""
    mib, traffic = job.setup.memory_mib, job.traffic
    size = f"{mib} MiB" if mib % GIB else f"{mib // GIB} GiB"
    usual = {"cores": f"{job.setup.cores}", "huge pages": size}
    return {**usual, "flows": f"{traffic.flows:,}", "direction": traffic.direction, **job.parameters}


def conditions_here(results: Results, words: Words) -> str:
    """The conditions of the results; the values that a case varies are listed together."""
    found: dict[str, list[str]] = {}
    for key in dict.fromkeys(one.job for one in results.searches if one.job in results.jobs):
        for name, value in conditions_of(results.jobs[key]).items():
            found.setdefault(name, []).append(words.quoted(value))
    comma = words("list.comma")
    return each([values_of({name: comma.join(dict.fromkeys(values))}, words) for name, values in found.items()], words)


def ports_here(facts: dict[str, object], words: Words) -> str:
    """The medium of the frames: the wire of the testbed, or this machine's network cards."""
    wire, cards = wire_of(facts), facts.get("network_devices")
    if wire and wire != OWN_PORTS:
        return words.name("wire", wire)
    return fact_text(cards, words) if cards else words("beside.no_nic")


def here_facts(scene: Scene, words: Words) -> dict[str, str]:
    """The facts about this machine that can be compared with those of a published machine."""
    results = scene.part.results
    records = [*results.searches, *results.others, *results.trials]
    facts = records[0].facts if records else {}
    return {
        "machine": fact_text(facts.get("cpu_model"), words),
        "nic": ports_here(facts, words),
        "device": each([record.dut for record in records], words),
        "conditions": conditions_here(results, words),
    }


Pair = tuple[str, str, str]  # the key of what is compared, as published, here


def pairs_of(found: Beside, scene: Scene, words: Words) -> list[Pair]:
    """What differs between the published measurements and these."""
    here, rows = here_facts(scene, words), found.published
    return [
        ("source", each([row.source for row in rows], words), words("beside.here")),
        (
            "scenario",
            each([row.scenario for row in rows], words),
            said(scene.part.case.title, words) if scene.part.case else NOTHING,
        ),
        ("machine", each([row.dut for row in rows], words), here["machine"]),
        ("nic", words("beside.line") if rows[0].unit.startswith("percent") else NOTHING, here["nic"]),
        ("device", NOTHING, here["device"]),
        ("conditions", each([row.note for row in rows], words), here["conditions"]),
        ("unit", each([row.unit for row in rows], words), "Mpps"),
    ]


def differences(scene: Scene, pairs: Sequence[Pair], shared: Container[Pair], words: Words) -> list[Element]:
    """The table of them, without those that a table of several cases holds."""
    rows = [Row((words(f"beside.{key}"), *cells)) for key, *cells in pairs if (key, *cells) not in shared]
    table = grid(f"{prefix_of(scene.part.case)}differs", DIFFERENCES, rows, words)
    if len(rows) == len(pairs):
        return [table]
    more = tag("a", words("fold.more", n=len(pairs) - len(rows)), href=f"#{SAME}")
    return [*([table] if rows else []), tag("p", more, class_="note", id=f"{prefix_of(scene.part.case)}more")]


def shared_pairs(scenes: Sequence[Scene], words: Words) -> list[Shared[Pair]]:
    """What is the same in several cases that stand beside published ones."""
    found = [
        (scene.part.case.key, pair)
        for scene in scenes
        if scene.part.case and scene.part.results.searches and (one := beside(scene.part))
        for pair in pairs_of(one, scene, words)
    ]
    order = list(dict.fromkeys(key for _, (key, *_) in found))
    common = [one for one in grouped(found, lambda pair: pair) if len(one.names) > 1]
    return sorted(common, key=lambda one: order.index(one.of[0]))


def shared_section(shared: Sequence[Shared[Pair]], words: Words) -> list[Element]:
    """That once for all of these cases."""
    if not shared:
        return []
    comma = words("list.comma")
    rows = [Row((words(f"beside.{one.of[0]}"), *one.of[1:], comma.join(one.names))) for one in shared]
    table = grid(SAME, (*DIFFERENCES, Column("cases")), rows, words)
    return [tag("details", tag("summary", words("fold.same")), table, open="", class_="same")]


def prefix_of(case: Case | None) -> str:
    """The prefix of the names of a case's charts and tables."""
    return f"{case_anchor(case)}-" if case else ""


def beside_section(scene: Scene, words: Words, shared: Container[Pair] = ()) -> list[Element]:
    """What differs, and the published figures themselves; `shared` is shown once for several cases."""
    found = beside(scene.part)
    if found is None:
        return []
    rows = [beside_row(row, found, scene, words) for row in found.published]
    table = grid(f"{prefix_of(scene.part.case)}published", BESIDE, rows, words)
    inner = tag("details", tag("summary", words("beside.figures", n=len(rows))), table)
    if not scene.part.results.searches:
        return [inner]
    return [*differences(scene, pairs_of(found, scene, words), shared, words), inner]


def left_out(case: Case, words: Words) -> list[Element]:
    """Values of a case's parameters that this machine does not support."""
    rows = [
        words("case.left_out", dut=one.dut, values=values_of(one.parameters, words), reason=said(one.reason, words))
        for one in case.left_out
    ]
    return [tag("ul", *(tag("li", row) for row in rows), class_="plain")] if rows else []


def flow_hits(case: Case, results: Results, words: Words) -> list[Element]:
    """Whether the packets of a case had a flow, if its devices have flow tables."""
    jobs = with_table(case.jobs)
    hits = FlowHits.of(results.trials, jobs)
    if hits is None:
        return []
    numbers = {"packets": f"{hits.packets:,}", "missed": f"{hits.missed:,}"}
    sentence = words(
        "case.flows_missed" if hits.missed else "case.flows_found", **numbers, dut=each(list(jobs.values()), words)
    )
    return [tag("p", sentence, class_="remark" if hits.missed else "note")]


def values_of(parameters: dict[str, str], words: Words) -> str:
    """Parameters on one line."""
    found = (words("parameter", name=words.name("parameter", k), value=words.quoted(v)) for k, v in parameters.items())
    return words("list.comma").join(found)


def case_head(case: Case, words: Words) -> list[Element]:
    """The heading of a case, and the reason if it is not applicable."""
    number = f"{case.key}  " if case.key[:1].isdigit() else ""
    heading = tag("h3", f"{number}{said(case.title, words)}", id=case_anchor(case))
    if case.jobs:
        return [heading]
    reason = said(case.reason, words) if case.reason else words("case.nothing")
    return [heading, tag("p", reason, class_="absent")]
