"""Loss over time and machine activity on one axis: pauses of workers, and events on their cores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from dl3.model.evidence import Evidence, Timeline
from dl3.model.trial import Trial
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.markup import mark, tag
from dl3.report.plot import Entry, Paper, below, point, svg, tip
from dl3.report.scale import Linear, linear_axis, linear_ticks
from dl3.report.words import Words
from dl3.report.worst import worst

WORDS = {
    "en": {
        "timelines.title": "Loss over time and machine activity",
        "timelines.name": "{dut}, {frame} frames at {mpps} Mpps: {lost} frames lost",
        "timelines.loss": "frames lost",
        "timelines.axis": "Milliseconds since the first frame was due",
        "timelines.gaps": "worker not polling",
        "timelines.events": "core busy with other work",
        "timelines.worker": "{program} worker {worker}, core {core}",
        "timelines.event": "{what}, core {core}",
        "timelines.nowhere": "{what}",
        "timelines.gap_tip": "{at} ms: {us} µs without a poll",
        "timelines.event_tip": "{at} ms: {us} µs, {who}",
        "timelines.moment_tip": "{at} ms: {who}",
        "timelines.messages": "{n} netlink messages from Linux",
        "timelines.loss_tip": "{at} ms: {lost} of {sent} frames lost",
        "timelines.note": "Lost frames are shown at the time at which they were due. All programs use the same clock.",
    },
    "zh": {
        "timelines.title": "丢包的时间分布与机器活动",
        "timelines.name": "{dut}，{frame}帧，{mpps} Mpps：丢失 {lost} 帧",
        "timelines.loss": "丢失的帧",
        "timelines.axis": "自首帧应当发出时起的毫秒数",
        "timelines.gaps": "工作线程停止轮询",
        "timelines.events": "核被其他任务占用",
        "timelines.worker": "{program} 工作线程 {worker}，核 {core}",
        "timelines.event": "{what}，核 {core}",
        "timelines.nowhere": "{what}",
        "timelines.gap_tip": "{at} ms：{us} µs 没有轮询",
        "timelines.event_tip": "{at} ms：{us} µs，{who}",
        "timelines.moment_tip": "{at} ms：{who}",
        "timelines.messages": "来自 Linux 的 {n} 条 netlink 消息",
        "timelines.loss_tip": "{at} ms：{sent} 帧中丢失 {lost} 帧",
        "timelines.note": "丢失的帧按其应当发出的时刻标出；各程序的时间均来自同一时钟。",
    },
}
FIELD, ROW, LEFT = 110, 20, 170
LEAST = 1.5  # minimum width, so that short intervals remain visible
HIGHEST_NS = 1e18
N_ROWS = 14


@dataclass(frozen=True)
class Mark:
    """An interval on a row, in nanoseconds since the first frame was due."""

    row: str
    start_ns: float
    length_ns: float
    tip: str
    class_: str
    series: int


@dataclass(frozen=True)
class Range:
    """What the axes of all these charts reach."""

    ms: float
    n_lost: int  # in one bucket


def gap_marks(evidence: Evidence, start_ns: int, words: Words) -> Iterable[Mark]:
    """When workers did not poll."""
    for gap in evidence.gaps:
        row = words("timelines.worker", program=gap.program, worker=gap.worker, core=gap.core)
        begin = gap.at_ns - gap.us * 1e3 - start_ns
        text = words("timelines.gap_tip", at=f"{begin / 1e6:,.3f}", us=f"{gap.us:,.1f}")
        yield Mark(row, begin, gap.us * 1e3, text, "gap", 1)


def event_marks(evidence: Evidence, start_ns: int, words: Words) -> Iterable[Mark]:
    """What the machine was doing."""
    for event in evidence.events:
        what = words.name("event", event.what)
        row = words("timelines.event" if event.core >= 0 else "timelines.nowhere", what=what, core=event.core)
        begin, key = event.at_ns - event.us * 1e3 - start_ns, "event_tip" if event.us else "moment_tip"
        who = words("timelines.messages", n=event.who) if event.what == "netlink" else event.who
        text = words(f"timelines.{key}", at=f"{begin / 1e6:,.3f}", us=f"{event.us:,.1f}", who=who)
        yield Mark(row, begin, event.us * 1e3, text, "event", 2)


def losses(line: Timeline) -> list[tuple[int, int, int]]:
    """Index, lost and sent frames of each bucket that lost frames."""
    pairs = zip(line.sent, line.received, strict=False)
    return [(n, sent - received, sent) for n, (sent, received) in enumerate(pairs) if sent > received]


def can_be_drawn(line: Timeline | None) -> bool:
    """Whether it was recorded, and has a length."""
    return line is not None and bool(line.sent) and 0 < line.bucket_ns * len(line.sent) < HIGHEST_NS


def range_of(trials: Sequence[Trial]) -> Range:
    """What both axes of all of them reach, so that one can be compared with another."""
    lines = [trial.timeline for trial in trials if trial.timeline and can_be_drawn(trial.timeline)]
    most = max((lost for line in lines for _, lost, _ in losses(line)), default=1)
    return Range(max((line.bucket_ns * len(line.sent) for line in lines), default=1) / 1e6, most)


def draw_loss(line: Timeline, most: int, scale: Linear, paper: Paper, words: Words) -> list[Element]:
    """Upright bars of lost frames, of which `most` is the highest of all charts; a small one can be seen, too."""
    found = losses(line)
    axis = linear_axis(words("timelines.loss"), most)
    y_scale = axis.scale(paper.top + FIELD, paper.top)
    parts = [tag("text", axis.name, class_="axis", x=4, y=paper.legend + 14)]
    for value, label in axis.ticks[:: max(len(axis.ticks) // 3, 1)]:
        y = y_scale.at(value)
        parts.append(tag("line", class_="grid", x1=paper.left, x2=paper.wall, y1=y, y2=y))
        parts.append(tag("text", label, class_="tick", x=paper.left - 8, y=y + 4, text_anchor="end"))
    for bucket, lost, sent in found:
        at = bucket * line.bucket_ns
        x, y = scale.at(at), min(y_scale.at(lost), paper.top + FIELD - LEAST)
        width = max(scale.at(at + line.bucket_ns) - x, LEAST)
        bar = tag("rect", class_="loss", x=x, y=y, width=width, height=paper.top + FIELD - y)
        text = words("timelines.loss_tip", at=f"{at / 1e6:,.3f}", lost=f"{lost:,}", sent=f"{sent:,}")
        parts.append(point(0, [mark(bar, bucket=bucket, value=lost)], tip(paper, text, x, y), None))
    return parts


def draw_mark(one: Mark, y: float, scale: Linear, paper: Paper) -> Element:
    """A pause or an event on its row."""
    x = scale.at(one.start_ns)
    width = max(scale.at(one.start_ns + one.length_ns) - x, LEAST)
    bar = tag("rect", class_=one.class_, x=x, y=y - 6, width=width, height=12)
    return point(one.series, [mark(bar, row=one.row, value=one.length_ns)], tip(paper, one.tip, x, y), None)


def draw_rows(marks: Sequence[Mark], scale: Linear, paper: Paper) -> list[Element]:
    """A row for each worker and each kind of event."""
    rows = list(dict.fromkeys(one.row for one in marks))[:N_ROWS]
    parts, top = [], paper.top + FIELD + ROW * 0.8
    for n, row in enumerate(rows):
        y = top + ROW * n
        parts.append(tag("line", class_="grid", x1=paper.left, x2=paper.wall, y1=y, y2=y))
        parts.append(tag("text", row, class_="tick", x=paper.left - 8, y=y + 4, text_anchor="end"))
        parts += [draw_mark(one, y, scale, paper) for one in marks if one.row == row]
    return parts


def picture(trial: Trial, reach: Range, words: Words) -> Element | None:
    """Loss over time of one trial; None where it was not recorded."""
    line = trial.timeline
    if line is None or not can_be_drawn(line):
        return None
    evidence = trial.evidence or Evidence()
    marks = [*gap_marks(evidence, line.start_ns, words), *event_marks(evidence, line.start_ns, words)]
    n_rows = min(len({one.row for one in marks}), N_ROWS)
    paper = Paper(height=34 + FIELD + ROW * (n_rows + 0.4) + 46, left=LEFT, top=34)
    ticks = linear_ticks(reach.ms)
    scale = Linear(ticks[-1] * 1e6, paper.left, paper.wall)
    middle = (paper.left + paper.wall) / 2
    name = {"dut": trial.dut, "frame": words.frame(trial.frame), "mpps": f"{trial.offered_pps / 1e6:,.3f}"}
    parts = [
        *draw_rows(marks, scale, paper),
        *draw_loss(line, reach.n_lost, scale, paper, words),
        *below(paper, [(scale.at(tick * 1e6), f"{tick:g}") for tick in ticks]),
        tag("text", words("timelines.axis"), class_="axis", x=middle, y=paper.height - 6, text_anchor="middle"),
    ]
    return svg(paper, words("timelines.name", **name, lost=f"{trial.account.lost:,}"), parts)


def draw_timelines(scene: Scene, words: Words) -> Drawing | None:
    """The worst trials, all with the same axes."""
    trials = worst(scene.part.results)
    found = [picture(trial, range_of(trials), words) for trial in trials]
    pictures = [shown for shown in found if shown is not None]
    keys = [
        Entry(words("timelines.loss"), "bar", "loss"),
        Entry(words("timelines.gaps"), "bar", "gap"),
        Entry(words("timelines.events"), "bar", "event"),
    ]
    return Drawing(words("timelines.title"), pictures, words("timelines.note"), keys) if pictures else None


CHART = Chart("timelines", 55, WORDS, draw_timelines, topic="explained", is_for_cases=False)
