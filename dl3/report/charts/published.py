"""Measured throughput next to published results for the same question, both in million frames per second."""

from collections.abc import Sequence
from dataclasses import dataclass

from dl3.report.bars import Bar, BarChart, Group, bar_entry, draw_bars, highest
from dl3.report.beside import Beside, beside, label_of
from dl3.report.by_frame import is_at_least, span_pps
from dl3.report.chart import Chart, Drawing, Scene
from dl3.report.groups import Groups
from dl3.report.names import series_names
from dl3.report.plot import Entry, colour
from dl3.report.published import Published, same
from dl3.report.results import Series, parts
from dl3.report.scale import shared_top
from dl3.report.units import mpps
from dl3.report.words import Words

WORDS = {
    "en": {
        "published.title": "Measured here and published",
        "published.only": "Published; not measured here",
        "published.entry": "published: {value}",
        "published.all": "published",
        "published.tip": "{source}: {value}, {frame}: {figure} {unit}{rate}",
        "published.rate": " = {mpps} Mpps",
        "published.note": "Filled bars were measured here, hollow ones are published; "
        "each colour is one value of what "
        "the case varies. Percentages were made into Mpps by the line rate that they "
        "are of. It is another machine: "
        "compare how the bars of one kind differ from each other, not one kind with the other. The axis is that of all "
        "such charts, except where its bars would be lower than a quarter of it.",
    },
    "zh": {
        "published.title": "本次实测与公开结果对照",
        "published.only": "公开结果（本机未测）",
        "published.entry": "公开：{value}",
        "published.all": "公开结果",
        "published.tip": "{source}：{value}，{frame}：{figure} {unit}{rate}",
        "published.rate": "，折合 {mpps} Mpps",
        "published.note": "实心柱为本次实测，空心柱为公开结果；每种颜色对应用例所改变参数的一个取值。"
        "百分比已按其所指线速折算为 "
        "Mpps。两者并非同一台机器：应比较同类柱之间的差异，而不是实心与空心的高低。"
        "各用例的此类图坐标轴相同；若柱高不足四分之一，则另取坐标轴。",
    },
}


@dataclass(frozen=True)
class Layout:
    """The positions of the bars. With a single frame size, each value of the case is a group."""

    found: Beside
    groups: Groups
    words: Words

    @property
    def is_by_value(self) -> bool:
        """Whether a group is a value of the varied parameter rather than a frame size."""
        return len(self.found.frames) == 1 and len(self.found.values) > 1

    @property
    def order(self) -> list[Series]:
        """The measured series."""
        return list(self.found.results.series)

    def value_of(self, series: Series) -> str:
        """The group of a measured series: the published value that is the same, else its own."""
        texts = [text for _, text in series.parameters]
        for row in self.found.published:
            if same(row.value, texts):
                return label_of(row, self.found.published)
        return ", ".join(texts) or series.dut

    def entries(self) -> list[Entry]:
        """The series: measured ones filled, published ones hollow; the same value has the same colour."""
        if self.is_by_value:
            duts = dict.fromkeys(one.dut for one in self.order)
            filled = [bar_entry(n, dut) for n, dut in enumerate(duts)]
            return [*filled, Entry(self.words("published.all"), "hollow", colour(len(filled)))]
        names = series_names(self.found.results, self.words)
        made = [bar_entry(n, names[one]) for n, one in enumerate(self.order)]
        free = len(made)
        for value in self.found.values:
            like = self.found.series_like(value.partition(", ")[0])
            index = self.order.index(like) if like else free
            free += 0 if like else 1
            made.append(Entry(self.words("published.entry", value=shown(value, self.words)), "hollow", colour(index)))
        return made

    def bar_groups(self) -> list[Group]:
        """The labels below the bars."""
        if not self.is_by_value:
            return [Group(frame, self.words.short_frame(frame)) for frame in self.found.frames]
        values = dict.fromkeys([*self.found.values, *(self.value_of(one) for one in self.order)])
        return [Group(value, shown(value, self.words)) for value in values]

    def measured(self) -> list[Bar]:
        """A filled bar for each result."""
        duts = list(dict.fromkeys(one.dut for one in self.order))
        bars = []
        for search in self.found.results.searches:
            span, series = span_pps(search), self.found.results.series_of(search)
            bars.append(
                Bar(
                    series=duts.index(series.dut) if self.is_by_value else self.order.index(series),
                    group=self.value_of(series) if self.is_by_value else search.frame,
                    value=search.pps / 1e6,
                    is_at_least=is_at_least(search),
                    span=(span[0] / 1e6, span[1] / 1e6) if span else None,
                    link=self.groups.link(search),
                )
            )
        return bars

    def published(self, n_filled: int) -> list[Bar]:
        """A hollow bar for each published figure."""
        bars, values, rows = [], self.found.values, self.found.published
        for row in rows:
            label = label_of(row, rows)
            series = n_filled if self.is_by_value else n_filled + values.index(label)
            group = label if self.is_by_value else row.frame
            bars.append(Bar(series=series, group=group, value=(row.pps or 0) / 1e6, tip=said(row, self.words)))
        return bars


def shown(label: str, words: Words) -> str:
    """A value, followed by the device if there is one."""
    value, comma, dut = label.partition(", ")
    return f"{words.quoted(value)}{comma}{dut}"


def said(row: Published, words: Words) -> str:
    """The tooltip of a published bar: the figure as it was published."""
    rate = "" if row.unit == "packet/s" else words("published.rate", mpps=mpps(row.pps))
    source, value, unit = (words.quoted(text) for text in (row.source, row.value, row.unit))
    says = {"source": source, "value": value, "frame": row.frame, "figure": f"{row.figure:,g}"}
    return words("published.tip", **says, unit=unit, rate=rate)


def top_of(own: Sequence[Bar], scene: Scene, words: Words) -> float:
    """What the axis reaches: the same in all such charts of the page, so that one can be compared with another."""
    groups = scene.groups
    if CHART.name not in groups.tops:
        found = [one for part in parts(groups.results) if (one := beside(part)) is not None]
        layouts = [Layout(one, groups, words) for one in found]
        groups.tops[CHART.name] = [top([*one.measured(), *one.published(0)]) for one in layouts]
    return shared_top(top(own), groups.tops[CHART.name])


def top(bars: Sequence[Bar]) -> float:
    """The highest of these bars."""
    return max(map(highest, bars), default=0.0)


def draw_published(scene: Scene, words: Words) -> Drawing | None:
    """The figure; None for a case without published figures."""
    found = beside(scene.part)
    if found is None:
        return None
    layout = Layout(found, scene.groups, words)
    series = layout.entries()
    n_filled = sum(entry.shape == "bar" for entry in series)
    bars = [*layout.measured(), *layout.published(n_filled)]
    title = words("published.title" if n_filled else "published.only")
    x_name = words.quoted(found.published[0].variable) if layout.is_by_value else words("axis.frame")
    chart = BarChart(
        title, x_name, "Mpps", series, layout.bar_groups(), bars, top=top_of(bars, scene, words), unit="Mpps"
    )
    return Drawing(title, [draw_bars(chart)], words("published.note") if n_filled else "", series)


CHART = Chart("published", 5, WORDS, draw_published)
