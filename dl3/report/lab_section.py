"""A lab on the page: where the report's frames were lost, and for each load a drawing and the table of places."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.lab import BACK, INSIDE, PLACES, THERE, Hop, LabRun
from dl3.report.chart import Drawing
from dl3.report.figure import figure
from dl3.report.grid import Column, Row, grid
from dl3.report.lab_drawing import drawing
from dl3.report.markup import tag
from dl3.report.names import short_loss
from dl3.report.published import rows_for
from dl3.report.results import Results
from dl3.report.units import MICRO, NOTHING, loss, micros, number, percent
from dl3.report.words import Words

SOURCE = "kvm-report"
CLAIMED = 0.0149  # the loss in l2fwd as the report has it; its own counts say otherwise
HOPS = (
    Column("place"),
    Column("came", "frames", True),
    Column("went", "frames", True),
    Column("lost", "frames", True),
    Column("lost_share", "%", True),
    Column("counter"),
)


@dataclass(frozen=True)
class Segment:
    """A part of the way, as the report counted it."""

    key: str
    places: tuple[str, ...]
    came: float
    went: float

    @property
    def ratio(self) -> float:
        """Lost frames divided by those that came."""
        return 1 - self.went / self.came


def segments() -> tuple[Segment, ...]:
    """The report's own counts, per 10 s."""
    counts = {row.metric.removesuffix(" per 10 s"): row.figure for row in rows_for(SOURCE)}
    sent, came = counts["pktgen sent"], counts["l2fwd received"]
    went, received = counts["l2fwd sent"], counts["pktgen received"]
    return (
        Segment("there", THERE, sent, came),
        Segment("inside", INSIDE, came, went),
        Segment("back", BACK, went, received),
        Segment("whole", PLACES, sent, received),
    )


def story(runs: Sequence[LabRun], words: Words) -> list[Element]:
    """The report's counts beside ours."""
    found = segments()
    values = {one.key: percent(one.ratio) for one in found} | {"claimed": percent(CLAIMED)}
    columns = [Column("segment"), Column("in_report", "frames"), Column("report_loss", "%", True)]
    columns += [Column(f"our_loss_{n}", "%", True) for n, _ in enumerate(runs)]
    rows = [
        Row(
            [
                words(f"lab.segment.{one.key}"),
                f"{one.came:,.0f} → {one.went:,.0f}",
                percent(one.ratio),
                *(short_loss(run.ratio_at(one.places)) for run in runs),
            ]
        )
        for one in found
    ]
    titles = {f"table.our_loss_{n}": words("lab.our_loss", rate=f"{run.asked_pps:,.0f}") for n, run in enumerate(runs)}
    own = Words(words.language, {**words.table, **titles})
    return [
        tag("p", words("lab.story", **values), class_="note"),
        grid("lab-report", columns, rows, own),
        tag("p", words("lab.story_note"), class_="note"),
    ]


def counters(hop: Hop, words: Words) -> str:
    """Which counters name the loss."""
    found = [f"{name} {n:,}" for name, n in hop.named.items() if n]
    found += [words("lab.unnamed", n=f"{hop.unnamed:,}")] if hop.unnamed else []
    return words("list.comma").join(found) or NOTHING


def place_text(place: str, run: LabRun, words: Words) -> str:
    """What a place is, with its name."""
    return words(f"lab.place.{place}", program=run.topology.vms[1].program)


def hop_row(hop: Hop, run: LabRun, words: Words) -> Row:
    """One place."""
    frames = (number(value, 0) for value in (hop.came, hop.went, hop.lost))
    share = loss(hop.lost / hop.came) if hop.came else NOTHING
    return Row([place_text(hop.place, run, words), *frames, share, counters(hop, words)], "worse" if hop.lost else None)


def hops_table(n: int, run: LabRun, words: Words) -> Element:
    """All places of a load, and their sum."""
    lost = sum(hop.lost for hop in run.hops)
    frames = (number(value, 0) for value in (run.sent, run.received, lost))
    share = loss(lost / run.sent) if run.sent else NOTHING
    whole = Row([words("lab.segment.whole"), *frames, share, NOTHING])
    return grid(f"hops-{n}", HOPS, [*(hop_row(hop, run, words) for hop in run.hops), whole], words)


def load_title(run: LabRun, words: Words) -> str:
    """The load of a run."""
    return words("lab.load", rate=f"{run.asked_pps:,.0f}", seconds=f"{run.seconds:g}")


def remarks(run: LabRun, words: Words) -> str:
    """What belongs to a load besides its table."""
    found = [words("lab.late", n=f"{run.late:,}")] if run.late else []
    found += [words("lab.latency", value=f"{micros(run.p50_ns)} {MICRO}")] if run.p50_ns else []
    found += [words("lab.short", place=run.topology.short_queue)] if run.topology.short_queue else []
    return " ".join([words("lab.sum"), *found])


def lab_section(results: Results, words: Words, numbered: Callable[[], int]) -> list[Element]:
    """Everything of the labs in the records; `numbered` gives the number of the next figure."""
    runs = results.labs
    if not runs:
        return []
    pieces = [tag("p", words("lab.emulated"), class_="remark")] if any(run.topology.is_emulated for run in runs) else []
    pieces += story(runs, words)
    for n, run in enumerate(runs, 1):
        shown = Drawing(load_title(run, words), [drawing(run, words)], words("lab.note"))
        pieces += [figure(numbered(), f"lab-{n}", shown, words), hops_table(n, run, words)]
        pieces.append(tag("p", remarks(run, words), class_="note"))
    return pieces


def lab_sentence(results: Results, words: Words) -> str:
    """The result of the highest load."""
    run = max(results.labs, key=lambda one: one.asked_pps)
    worst = max(run.hops, key=lambda hop: hop.lost)
    lost = run.sent - run.received
    names = {
        "program": run.topology.vms[1].program,
        "switch": words(f"lab.switch.{run.topology.switch}"),
        "on": words(f"lab.on.{run.topology.accelerator}"),
        "sent": f"{run.sent:,}",
        "lost": f"{lost:,}",
    }
    if lost <= 0:
        return words("lab.says_none", **names)
    place = place_text(worst.place, run, words)
    return words(
        "lab.says", **names, percent=percent(lost / run.sent), place=place, share=percent(worst.lost / lost, 0)
    )
