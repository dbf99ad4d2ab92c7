"""Tables of all tests except throughput and latency: the rows of each result, by test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from xml.etree.ElementTree import Element

from dl3.model.results import BackToBack, Forwarding, FrameLoss, OverLoads, Recovery, Reset, Versus
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


def loss_cells(result: Other, _words: Words) -> Cells:
    """Each load of a frame loss rate test."""
    if not isinstance(result, FrameLoss):
        return []
    return [(percent(at.share, 1), mpps(at.pps), loss(at.loss_ratio)) for at in result.points]


def burst_cells(result: Other, words: Words) -> Cells:
    """The longest burst."""
    if not isinstance(result, BackToBack):
        return []
    frames = number(result.frames, 0)
    shown = words("at_least", value=frames) if result.is_at_least else frames
    ends = (number(min(result.bursts, default=None), 0), number(max(result.bursts, default=None), 0))
    buffers = (number(result.implied_buffer_s * 1e3, 3), number(result.corrected_buffer_s * 1e3, 3))
    return [(mpps(result.burst_pps), shown, *ends, *buffers)]


def recovery_cells(result: Other, words: Words) -> Cells:
    """The recovery time."""
    if not isinstance(result, Recovery):
        return []
    shown = times(result.seconds)
    if result.is_at_most:
        shown = tuple(words("at_most", value=value) for value in shown)
    return [(mpps(result.overload_pps), mpps(result.recovery_pps), *shown)]


def reset_cells(result: Other, words: Words) -> Cells:
    """The time out of service."""
    if not isinstance(result, Reset):
        return []
    lost = number(mean(result.lost), 0)
    return [(words(f"reset.{result.what}"), mpps(result.offered_pps), *times(result.seconds), lost)]


def forwarding_cells(result: Other, _words: Words) -> Cells:
    """The rates of RFC 2889."""
    if not isinstance(result, Forwarding):
        return []
    return [(mpps(result.at_most_offered_pps), mpps(result.most_pps), mpps(result.most_at_pps))]


def versus_cells(result: Other, words: Words) -> Cells:
    """Both devices and their ratio."""
    if not isinstance(result, Versus):
        return []
    rates = [mpps(median(values) if values else None) for values in (result.ours_pps, result.peer_pps)]
    low, high = (number(value, 3) for value in result.interval)
    test = words.name("test", result.test)
    return [(result.peer, test, *rates, number(result.ratio, 3), f"{low}–{high}", str(len(result.ours_pps)))]


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
    found = [(result, cells) for result in results.others if (cells := sheet.cells(result, words))]
    if not found:
        return []
    names = table_names((results.series_of(result) for result, _ in found), words)
    rows = []
    for result, cells in found:
        head = (names[results.series_of(result)], words.short_frame(result.frame))
        purposes = [purpose_text(one, words) for one in groups.throughputs.of_result(result)]
        rows += [
            Row((*head, *each, purpose, groups.lines(result)), link=groups.link(result))
            for each, purpose in zip(cells, purposes, strict=True)
        ]
    table = grid(f"{prefix}{sheet.name}", sheet.columns, rows, words)
    noisy = [noise_note(result, words) for result, _ in found if result.noise]
    unknown = [
        loads_note(result, words) for result, _ in found if isinstance(result, OverLoads) and result.invalid_shares
    ]
    return [table, tag("p", words(f"note.{sheet.name}"), class_="note"), *unknown, *noisy]


def loads_note(result: OverLoads, words: Words) -> Element:
    """Loads without a valid trial."""
    n, percent_of = str(len(result.invalid_shares)), percents(result.invalid_shares)
    frame = words.frame(result.frame)
    return tag("p", words("note.loads", dut=result.dut, frame=frame, n=n, loads=percent_of), class_="note")


def noise_note(result: Other, words: Words) -> Element:
    """The note that a machine was noisy, with the reason."""
    why = noise_text(result.noise, words)
    return tag("p", words("note.noisy", dut=result.dut, frame=words.frame(result.frame), why=why), class_="note")
