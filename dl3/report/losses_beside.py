"""What was lost here at loads at which a source has published its loss, and at higher ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.results import FrameLoss, LossPoint
from dl3.report.chart import Scene
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.names import table_names
from dl3.report.over_load import can_be_drawn
from dl3.report.published import losses_for
from dl3.report.units import NOTHING, loss, mpps
from dl3.report.words import Words

COLUMNS = (
    Column("device"),
    Column("frame"),
    Column("published_offered", "Mpps", True),
    Column("published_loss", "%", True),
    Column("offered", "Mpps", True),
    Column("ratio", "%", True),
)
NEAR = 0.02  # of a rate: two loads are the same


@dataclass(frozen=True)
class Known:
    """A load of a source, in frames/s, and what it lost."""

    pps: float
    ratio: float


def known_losses(names: Iterable[str]) -> dict[str, list[Known]]:
    """The loads of the named sources with their losses, ascending, by frame size."""
    found: dict[str, list[Known]] = {}
    for offered, ratio in losses_for(names):
        found.setdefault(offered.frame, []).append(Known(offered.figure, ratio))
    return {frame: sorted(loads, key=lambda one: one.pps) for frame, loads in found.items()}


def at_load(points: Sequence[LossPoint], pps: float) -> LossPoint | None:
    """The point at this load, else the next one above it; `points` ascend."""
    same = [point for point in points if abs(point.pps - pps) <= pps * NEAR]
    if same:
        return min(same, key=lambda point: abs(point.pps - pps))
    return next((point for point in points if point.pps > pps), None)


def lossless_up_to(points: Sequence[LossPoint], pps: float) -> float:
    """The highest load, from this one on, up to which no load lost anything; 0: there is none. `points` ascend."""
    highest = 0.0
    for point in points:
        if point.pps < pps * (1 - NEAR):
            continue
        if point.loss_ratio > 0:
            break
        highest = point.pps
    return highest


def sentence(result: FrameLoss, points: Sequence[LossPoint], known: Sequence[Known], words: Words) -> Element:
    """Whether anything was lost at these loads and above."""
    highest = lossless_up_to(points, known[0].pps)
    is_lossless = highest >= known[-1].pps * (1 - NEAR)
    ratios = [one.ratio for one in known]
    values = {
        "dut": result.dut,
        "frame": words.frame(result.frame),
        "from": mpps(known[0].pps),
        "to": mpps(known[-1].pps),
        "highest": mpps(highest),
        "least": loss(min(ratios)),
        "most": loss(max(ratios)),
    }
    key = "losses.none" if is_lossless else "losses.some" if at_load(points, known[0].pps) else "losses.unknown"
    return tag("p", words(key, **values), class_=None if is_lossless else "remark")


def losses_section(scene: Scene, prefix: str, words: Words) -> list[Element]:
    """The table, with a sentence for each frame size; empty for a case whose sources have not published their loss."""
    results = scene.part.results
    known = known_losses(scene.part.case.published) if scene.part.case else {}
    found = [one for one in results.others if isinstance(one, FrameLoss) and one.frame in known]
    if not found:
        return []
    names = table_names(map(results.series_of, found), words)
    rows, sentences = [], []
    for result in found:
        points = sorted(filter(can_be_drawn, result.points), key=lambda one: one.pps)
        sentences.append(sentence(result, points, known[result.frame], words))
        for one in known[result.frame]:
            here = at_load(points, one.pps)
            own = (mpps(here.pps), loss(here.loss_ratio)) if here else (NOTHING, NOTHING)
            cells = (names[results.series_of(result)], words.short_frame(result.frame))
            rows.append(Row((*cells, mpps(one.pps), loss(one.ratio), *own), link=scene.groups.link(result)))
    return [*sentences, grid(f"{prefix}losses", COLUMNS, rows, words)]
