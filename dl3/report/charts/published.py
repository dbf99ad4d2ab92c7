"""Measured throughput beside what others published of the same question, both in million frames a second."""

from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars
from dl3.report.beside import Beside, beside, label_of
from dl3.report.by_frame import is_at_least, span_pps
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.groups import Groups
from dl3.report.names import series_names
from dl3.report.plot import Entry, colour
from dl3.report.results import Series
from dl3.report.units import mpps
from dl3.report.words import Words

WORDS = {
    "en": {
        "published.title": "Measured here, and as published",
        "published.only": "As published; not measured here",
        "published.entry": "published: {value}",
        "published.tip": "{source}: {value}, {frame}: {figure} {unit}{rate}",
        "published.rate": " = {mpps} Mpps",
        "published.note": "Filled bars were measured here, hollow ones are published; "
        "each colour is one value of what "
        "the case varies. Percentages were made into Mpps by the line rate that they "
        "are of. It is another machine: "
        "compare how the bars of one kind differ from each other, not one kind with the other.",
    },
    "zh": {
        "published.title": "本次实测与公开结果对照",
        "published.only": "公开结果（本机未测）",
        "published.entry": "公开：{value}",
        "published.tip": "{source}：{value}，{frame}：{figure} {unit}{rate}",
        "published.rate": "，折合 {mpps} Mpps",
        "published.note": "实心柱为本次实测，空心柱为公开结果；每种颜色对应用例所改变参数的一个取值。"
        "百分比已按其所指线速折算为 "
        "Mpps。两者并非同一台机器：应比较同类柱之间的差异，而不是实心与空心的高低。",
    },
}


def measured_bars(found: Beside, order: list[Series], groups: Groups) -> list[Bar]:
    """A filled bar for each answer."""
    bars = []
    for search in found.results.searches:
        span = span_pps(search)
        bars.append(
            Bar(
                series=order.index(found.results.series_of(search)),
                group=search.frame,
                value=search.pps / 1e6,
                is_at_least=is_at_least(search),
                span=(span[0] / 1e6, span[1] / 1e6) if span else None,
                link=groups.link(search),
            )
        )
    return bars


def published_bars(found: Beside, n_measured: int, words: Words) -> list[Bar]:
    """A hollow bar for each published figure."""
    bars, values = [], found.values
    for row in found.published:
        rate = "" if row.unit == "packet/s" else words("published.rate", mpps=mpps(row.pps))
        says = {"source": row.source, "value": row.value, "frame": row.frame, "figure": f"{row.figure:,g}"}
        text = words("published.tip", **says, unit=row.unit, rate=rate)
        series = n_measured + values.index(label_of(row, found.published))
        bars.append(Bar(series=series, group=row.frame, value=(row.pps or 0) / 1e6, tip=text))
    return bars


def entries(found: Beside, order: list[Series], words: Words) -> list[Entry]:
    """The series: measured ones filled, published ones hollow; the same value has the same colour."""
    names = series_names(found.results, words)
    made = [bar_entry(n, names[one]) for n, one in enumerate(order)]
    free = len(order)
    for value in found.values:
        like = found.series_like(value.partition(", ")[0])
        index = order.index(like) if like else free
        free += 0 if like else 1
        made.append(Entry(words("published.entry", value=value), "hollow", colour(index)))
    return made


def draw_published(scene: Scene, words: Words) -> Drawing | None:
    """The figure; None for a case without published figures."""
    found = beside(scene.part)
    if found is None:
        return None
    order = list(found.results.series)
    series = entries(found, order, words)
    bars = [*measured_bars(found, order, scene.groups), *published_bars(found, len(order), words)]
    groups = [Group(frame, words.short_frame(frame)) for frame in found.frames]
    title = words("published.title" if order else "published.only")
    chart = BarChart(title, words("axis.frame"), "Mpps", series, groups, bars, unit="Mpps")
    return Drawing(title, [draw_bars(chart)], words("published.note") if order else "", series)


CHART = Chart("published", 5, WORDS, draw_published)
