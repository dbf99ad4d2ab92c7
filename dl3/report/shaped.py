"""The section about shaping: how well devices kept the rates of subscribers, over windows and in total, and the delays."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.model.shaping import Shaping
from dl3.report.grid import Column, Row, grid
from dl3.report.markup import tag
from dl3.report.results import Results
from dl3.report.units import MICRO, NOTHING, micros, number, percent, significant
from dl3.report.words import Words

ENGLISH = {
    "section.shaping": "Shaping of subscribers",
    "test.shaping": "shaping",
    "table.subscribers": "Subscribers",
    "table.queue": "Queue",
    "table.set_rate": "Set rate",
    "table.error_mean": "Mean error",
    "table.error_low": "Lowest",
    "table.error_high": "Highest",
    "table.within": "Within 1 %",
    "table.silent": "Without a rate",
    "table.jain": "Fairness",
    "table.shaped_burst": "Largest burst",
    "table.window": "Window",
    "table.lowest_rate": "Lowest rate",
    "table.highest_rate": "Highest rate",
    "table.shaped_class": "Class",
    "table.class_share": "Offered",
    "table.max_delay": "Max",
    "shaping.strict": "strict, DSCP {dscp}",
    "shaping.rest": "rest, DSCP {dscp}",
    "shaping.unknown": "unknown",
    "shaping.note": "Each subscriber was offered {overload} times its rate for {seconds} s, in two classes. Rates are of layer 2 with the "
    "FCS, from the first frame of a subscriber to its last. Error: of the rate, relative to the set one; mean, lowest and "
    "highest of all subscribers. Fairness: Jain's index of the rates, each as a share of the set one; 1 is equal. Largest "
    "burst: how much more than its rate any subscriber got in any interval.",
    "shaping.windows": "The lowest and the highest rate of any subscriber in any window, in percent of the set rate. Windows in "
    "which fewer than ten frames of a subscriber are due are left out.",
    "shaping.delays": "From when a frame was due until it came back. The rest waits by intent: more is offered than may pass.",
    "shaping.sentence": "{dut} gave {n} subscribers their rates with a mean error of {error} %, the worst {worst} %; fairness "
    "{jain}.",
    "title.shaping": "Shaping: {duts}",
    "reason.gaps": "workers stalled",
    "reason.log": "log full",
    "why.stalled": "workers of {program} {n} times for longer than {bridged} µs, up to {us} µs; subscribers can have lost "
    "{share} of their rates, more than {most}",
    "why.log": "{n} frames came when the log of arrivals was full",
}
CHINESE = {
    "section.shaping": "用户整形",
    "test.shaping": "整形",
    "table.subscribers": "用户数",
    "table.queue": "队列",
    "table.set_rate": "设定速率",
    "table.error_mean": "平均误差",
    "table.error_low": "最低",
    "table.error_high": "最高",
    "table.within": "误差 1% 以内",
    "table.silent": "测不出速率",
    "table.jain": "公平性",
    "table.shaped_burst": "最大突发",
    "table.window": "窗口",
    "table.lowest_rate": "最低速率",
    "table.highest_rate": "最高速率",
    "table.shaped_class": "类别",
    "table.class_share": "发送",
    "table.max_delay": "最大",
    "shaping.strict": "严格优先，DSCP {dscp}",
    "shaping.rest": "其余，DSCP {dscp}",
    "shaping.unknown": "未知",
    "shaping.note": "向每个用户分两个类别发送其速率的 {overload} 倍，持续 {seconds} 秒。"
    "速率按二层计算，包含 FCS，从该用户的第一帧到最后一帧。"
    "误差相对于设定速率，取所有用户的平均、最低和最高值。公平性为各用户实得与设定速率之比的 Jain 指数，1 表示完全相等。"
    "最大突发：任一用户在任一时段内超出其速率的字节数。",
    "shaping.windows": "任一用户在任一窗口内的最低与最高速率，以设定速率的百分比表示。每个用户应到不足十帧的窗口不列出。",
    "shaping.delays": "从帧的应发时刻到返回为止。其余类别的排队是有意造成的：发送量超过允许通过的量。",
    "shaping.sentence": "{dut} 对 {n} 个用户整形，速率平均误差 {error} %，最差 {worst} %，公平性 {jain}。",
    "title.shaping": "整形测试：{duts}",
    "reason.gaps": "工作线程停顿",
    "reason.log": "记录已满",
    "why.stalled": "{program} 的工作线程有 {n} 次停顿超过 {bridged} µs，最长 {us} µs；用户可能因此损失其速率的 {share}，超过 {most}",
    "why.log": "到达时间的记录已满后又收到 {n} 帧",
}

RATES = (
    Column("device"),
    Column("wire"),
    Column("queue"),
    Column("frame"),
    Column("subscribers", "", True),
    Column("set_rate", "Mbit/s", True),
    Column("error_mean", "%", True),
    Column("error_low", "%", True),
    Column("error_high", "%", True),
    Column("within", "%", True),
    Column("silent", "", True, is_optional=True),
    Column("jain", "", True),
    Column("shaped_burst", "bytes", True),
    Column("line"),
)
WINDOWS = (
    Column("device"),
    Column("subscribers", "", True),
    Column("window", "ms", True),
    Column("lowest_rate", "%", True),
    Column("highest_rate", "%", True),
    Column("line"),
)
DELAYS = (
    Column("device"),
    Column("subscribers", "", True),
    Column("shaped_class"),
    Column("class_share", "%", True),
    Column("p50", MICRO, True),
    Column("p90", MICRO, True),
    Column("p99", MICRO, True),
    Column("p99_9", MICRO, True),
    Column("max_delay", MICRO, True),
    Column("line"),
)


def rates_text(result: Shaping) -> str:
    """One rate, or the lowest and the highest of several, in Mbit/s."""
    ends = dict.fromkeys((min(result.rates_bps), max(result.rates_bps)))
    return "–".join(significant(bps / 1e6) for bps in ends)


def head(result: Shaping) -> tuple[str, str]:
    """The device and its number of subscribers."""
    return result.dut, number(result.subscribers, 0)


def rate_row(result: Shaping, results: Results, words: Words) -> Row:
    """How exact the rates were."""
    dut, subscribers = head(result)
    errors = (percent(value, 3) for value in (result.error_mean, result.error_low, result.error_high))
    return Row(
        (
            dut,
            words.name("wire", result.wire),
            result.queue or words("shaping.unknown"),
            words.short_frame(result.frame),
            subscribers,
            rates_text(result),
            *errors,
            percent(result.within, 1),
            number(result.silent, 0) if result.silent else NOTHING,
            number(result.jain, 5),
            number(result.burst_bytes, 0),
            results.line(result),
        )
    )


def window_rows(result: Shaping, results: Results) -> list[Row]:
    """The rates over windows of each length."""
    return [
        Row(
            (
                *head(result),
                number(one.seconds * 1e3, 0),
                percent(one.low, 1),
                percent(one.high, 1),
                results.line(result),
            )
        )
        for one in result.windows
    ]


def delay_rows(result: Shaping, results: Results, words: Words) -> list[Row]:
    """The delays of each class."""
    found = []
    for one in result.classes:
        times = (one.delay.p50, one.delay.p90, one.delay.p99, one.delay.p99_9, one.delay.max)
        shown = [micros(value) if one.delay.n else NOTHING for value in times]
        name = words(f"shaping.{one.name}", dscp=one.dscp)
        found.append(Row((*head(result), name, percent(one.share, 0), *shown, results.line(result))))
    return found


def notes_of(found: Sequence[Shaping], words: Words) -> list[Element]:
    """What was done; more than one where results differ in it."""
    texts = (words("shaping.note", overload=f"{one.overload:g}", seconds=f"{one.seconds:g}") for one in found)
    return [tag("p", text, class_="note") for text in dict.fromkeys(texts)]


def shaping_section(results: Results, words: Words) -> list[Element]:
    """The tables; empty without a result."""
    found = results.shapings
    if not found:
        return []
    pieces = [grid("shaping", RATES, [rate_row(one, results, words) for one in found], words), *notes_of(found, words)]
    if windows := [row for one in found for row in window_rows(one, results)]:
        pieces += [grid("shaping-windows", WINDOWS, windows, words), tag("p", words("shaping.windows"), class_="note")]
    delays = [row for one in found for row in delay_rows(one, results, words)]
    return [*pieces, grid("shaping-delays", DELAYS, delays, words), tag("p", words("shaping.delays"), class_="note")]


def shaping_sentences(results: Results, words: Words) -> list[str]:
    """The result in a sentence for each device and number of subscribers."""
    return [
        words(
            "shaping.sentence",
            dut=one.dut,
            n=number(one.subscribers, 0),
            error=percent(one.error_mean, 2),
            worst=percent(max(one.error_low, one.error_high, key=abs), 2),
            jain=number(one.jain, 4),
        )
        for one in results.shapings
    ]
