"""Tables of all tests except throughput and latency: the rows of each result, by test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from xml.etree.ElementTree import Element

from dl3.model.answers import BackToBack, Forwarding, FrameLoss, OverLoads, Recovery, Reset, Versus
from dl3.report.chart import Scene
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.names import table_names
from dl3.report.on_purpose import purpose_text
from dl3.report.reasons import noise_text
from dl3.report.results import Other
from dl3.report.units import NOTHING, loss, mpps, number, percent, percents
from dl3.report.words import Words

Cells = list[tuple[str, ...]]
HEAD = (Column("device"), Column("frame"))
LINES = Column("lines")
PURPOSE = Column("note", is_optional=True)  # that the load was above the throughput on purpose
TIMES = (Column("mean_time", "ms", True), Column("shortest", "ms", True), Column("longest", "ms", True))
LOSS_POINTS = (
    *HEAD,
    Column("load", "%", True),
    Column("offered", "Mpps", True),
    Column("ratio", "%", True),
    PURPOSE,
    LINES,
)
BURSTS = (
    *HEAD,
    Column("burst_rate", "Mpps", True),
    Column("burst", "frames", True),
    Column("shortest", "frames", True),
    Column("longest", "frames", True),
    Column("buffer", "ms", True),
    Column("corrected", "ms", True),
    PURPOSE,
    LINES,
)
RECOVERY = (*HEAD, Column("overload", "Mpps", True), Column("after", "Mpps", True), *TIMES, PURPOSE, LINES)
RESET = (*HEAD, Column("what"), Column("offered", "Mpps", True), *TIMES, Column("lost", "frames", True), PURPOSE, LINES)
FORWARDING = (
    *HEAD,
    Column("frmol", "Mpps", True),
    Column("mfr", "Mpps", True),
    Column("mfr_at", "Mpps", True),
    PURPOSE,
    LINES,
)
VERSUS = (
    *HEAD,
    Column("peer"),
    Column("test"),
    Column("ours", "Mpps", True),
    Column("theirs", "Mpps", True),
    Column("ratio_of", "", True),
    Column("interval_of"),
    Column("pairs", "", True),
    PURPOSE,
    LINES,
)


def mean(values: Sequence[float]) -> float | None:
    """The mean; None if empty."""
    return sum(values) / len(values) if values else None


def times(seconds: Sequence[float]) -> tuple[str, ...]:
    """Mean, minimum and maximum in milliseconds."""
    if not seconds:
        return NOTHING, NOTHING, NOTHING
    return tuple(number(value * 1e3, 2) for value in (sum(seconds) / len(seconds), min(seconds), max(seconds)))


def loss_cells(answer: Other, _words: Words) -> Cells:
    """Each load of a frame loss rate test."""
    if not isinstance(answer, FrameLoss):
        return []
    return [(percent(at.share, 1), mpps(at.pps), loss(at.loss_ratio)) for at in answer.points]


def burst_cells(answer: Other, words: Words) -> Cells:
    """The longest burst."""
    if not isinstance(answer, BackToBack):
        return []
    frames = number(answer.frames, 0)
    shown = words("at_least", value=frames) if answer.is_at_least else frames
    ends = (number(min(answer.bursts, default=None), 0), number(max(answer.bursts, default=None), 0))
    buffers = (number(answer.implied_buffer_s * 1e3, 3), number(answer.corrected_buffer_s * 1e3, 3))
    return [(mpps(answer.burst_pps), shown, *ends, *buffers)]


def recovery_cells(answer: Other, words: Words) -> Cells:
    """The recovery time."""
    if not isinstance(answer, Recovery):
        return []
    shown = times(answer.seconds)
    if answer.is_at_most:
        shown = tuple(words("at_most", value=value) for value in shown)
    return [(mpps(answer.overload_pps), mpps(answer.recovery_pps), *shown)]


def reset_cells(answer: Other, words: Words) -> Cells:
    """The time out of service."""
    if not isinstance(answer, Reset):
        return []
    lost = number(mean(answer.lost), 0)
    return [(words(f"reset.{answer.what}"), mpps(answer.offered_pps), *times(answer.seconds), lost)]


def forwarding_cells(answer: Other, _words: Words) -> Cells:
    """The rates of RFC 2889."""
    if not isinstance(answer, Forwarding):
        return []
    return [(mpps(answer.at_most_offered_pps), mpps(answer.most_pps), mpps(answer.most_at_pps))]


def versus_cells(answer: Other, words: Words) -> Cells:
    """Both devices and their ratio."""
    if not isinstance(answer, Versus):
        return []
    rates = [mpps(median(values) if values else None) for values in (answer.ours_pps, answer.peer_pps)]
    low, high = (number(value, 3) for value in answer.interval)
    test = words.name("test", answer.test)
    return [(answer.peer, test, *rates, number(answer.ratio, 3), f"{low}–{high}", str(len(answer.ours_pps)))]


@dataclass(frozen=True)
class Sheet:
    """A table: its name, its columns, and the cells of a result between its frame size and its lines."""

    name: str
    columns: Sequence[Column]
    cells: Callable[[Other, Words], Cells]


SHEETS = (
    Sheet("frame_loss", LOSS_POINTS, loss_cells),
    Sheet("back_to_back", BURSTS, burst_cells),
    Sheet("recovery", RECOVERY, recovery_cells),
    Sheet("reset", RESET, reset_cells),
    Sheet("forwarding", FORWARDING, forwarding_cells),
    Sheet("versus", VERSUS, versus_cells),
)


def sheet_table(sheet: Sheet, scene: Scene, prefix: str, words: Words) -> list[Element]:
    """The table of one test with its notes; empty without a result."""
    results, groups = scene.part.results, scene.groups
    found = [(answer, cells) for answer in results.others if (cells := sheet.cells(answer, words))]
    if not found:
        return []
    names = table_names((results.series_of(answer) for answer, _ in found), words)
    rows = []
    for answer, cells in found:
        head = (names[results.series_of(answer)], words.short_frame(answer.frame))
        purposes = [purpose_text(one, words) for one in groups.throughputs.of_answer(answer)]
        rows += [
            Row((*head, *each, purpose, groups.lines(answer)), link=groups.link(answer))
            for each, purpose in zip(cells, purposes, strict=True)
        ]
    table = grid(f"{prefix}{sheet.name}", sheet.columns, rows, words)
    noisy = [noise_note(answer, words) for answer, _ in found if answer.noise]
    unknown = [
        loads_note(answer, words) for answer, _ in found if isinstance(answer, OverLoads) and answer.invalid_shares
    ]
    return [table, tag("p", words(f"note.{sheet.name}"), class_="note"), *unknown, *noisy]


def loads_note(answer: OverLoads, words: Words) -> Element:
    """Loads without a valid trial."""
    n, percent_of = str(len(answer.invalid_shares)), percents(answer.invalid_shares)
    frame = words.frame(answer.frame)
    return tag("p", words("note.loads", dut=answer.dut, frame=frame, n=n, loads=percent_of), class_="note")


def noise_note(answer: Other, words: Words) -> Element:
    """The note that a machine was noisy, with the reason."""
    why = noise_text(answer.noise, words)
    return tag("p", words("note.noisy", dut=answer.dut, frame=words.frame(answer.frame), why=why), class_="note")
