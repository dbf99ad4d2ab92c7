"""Sentences of records in Chinese: why a job or a self-test has no result, and what evidence a trial lacks.

Records keep them in English; the tables below match them, and a sentence that matches none is shown unchanged.

The group 'reason' matches the reason of an INVALID trial, 'why' another of these sentences, 'frame' and 'place' a name
in the record.
"""

import re

from dl3.report.reasons import noise_text, reason_text
from dl3.report.words import Language, Words

N = r"-?[\d,.]+"
WORD = "(late|sink late|stalls|pacing|accounting|link|burst|clock|gaps|log)"  # the first word of a reason
NO_RESULT = (
    (
        rf"no result: at (?P<pps>{N}) packets/s (?P<n>{N}) trials were INVALID, the last because (?P<reason>.*)",
        "没有结果：在每秒 {pps} 包的速率上有 {n} 次试验无效，最后一次的原因为：{reason}",
    ),
    (
        rf"no result: (?P<n>{N}) trials of (?P<s>{N}) s in all did not settle it, the device behaves differently "
        r"each time: make trials longer, or allow some of them to lose \(exceed ratio\)",
        "没有结果：{n} 次试验共 {s} 秒仍无法得出结论，被测设备每次表现不同："
        "请延长单次时长，或允许部分试验丢包（exceed ratio）",
    ),
    (
        r"no result: the trials of all loads were INVALID, see their reasons",
        "没有结果：所有负载的试验均无效，原因见各次试验",
    ),
    (
        rf"no result: a burst of (?P<n>{N}) frames was INVALID (?P<times>{N}) times, the last because (?P<reason>.*)",
        "没有结果：{n} 帧的突发有 {times} 次无效，最后一次的原因为：{reason}",
    ),
    (
        rf"no result: the trial of the overload was INVALID (?P<n>{N}) times, the last because (?P<reason>.*)",
        "没有结果：过载试验有 {n} 次无效，最后一次的原因为：{reason}",
    ),
    (
        r"no result: the trials of a reset were INVALID, the last because (?P<reason>.*)",
        "没有结果：复位试验均无效，最后一次的原因为：{reason}",
    ),
    (
        r"no result: nothing was lost in the overload, so there is nothing to recover from: search its throughput "
        r"again, with longer trials",
        "没有结果：过载时没有丢包，也就无从恢复：请用更长的试验重新搜索其吞吐量",
    ),
    (
        rf"no result: (?P<s>{N}) s after the overload frames were still lost: give it longer trials",
        "没有结果：过载结束 {s} 秒后仍在丢包：请延长单次时长",
    ),
    (
        rf"no result: the device did not forward again within (?P<s>{N}) s: look at its log",
        "没有结果：被测设备在 {s} 秒内没有恢复转发：请查看其日志",
    ),
    (
        r"no result: this test begins with the throughput, and its search had (?P<why>.*)",
        "没有结果：此项测试以吞吐量为起点，而吞吐量搜索的结论是：{why}",
    ),
    (r"(?P<noise>no result: the generator fell behind .*)", "没有结果：{noise}"),
    (
        rf"no result: none of (?P<n>{N}) frames at (?P<mpps>{N}) Mpps came back: check cables, dst_mac, the device's "
        r"routes, and the streams' 'to'",
        "没有结果：以 {mpps} Mpps 发出的 {n} 帧无一返回：请检查线缆、dst_mac、被测设备的路由和测试流的 to",
    ),
    (
        rf"no result: none of (?P<n>{N}) frames at (?P<mpps>{N}) Mpps came back \(most: (?P<place>.*)\): check "
        r"cables, dst_mac, the device's routes, and the streams' 'to'",
        "没有结果：以 {mpps} Mpps 发出的 {n} 帧无一返回（多数丢失于：{place}）："
        "请检查线缆、dst_mac、被测设备的路由和测试流的 to",
    ),
    (
        r"no result for frames of (?P<frame>\w+): dl3gen sent nothing at its maximum rate; (?P<reason>.*)",
        "{frame}帧没有结果：dl3gen 以最高速率也未发出任何帧；{reason}",
    ),
    (
        r"no result: the loop lost frames at any rate, or the generator fell behind",
        "没有结果：回环在任何速率下都丢包，或发生器发送不及时",
    ),
    (
        rf"loop: it lost frames at (?P<mpps>{N}) Mpps, so the generator's own ceiling is higher",
        "回环在 {mpps} Mpps 时丢包，因此发生器自身的上限更高",
    ),
    (rf"no result: (?P<reason>{WORD}: .*)", "没有结果：{reason}"),
    (rf"(?P<reason>{WORD}: .*)", "{reason}"),
    *(
        (
            rf"not applicable: frames of (?P<frame>\w+): the tester cannot overload (?P<dut>.*) \((?P<share>{N})% of "
            rf"(?P<of>{N}) Mpps is above {english} (?P<top>{N}) Mpps\)",
            f"不适用：{{frame}}帧：发生器无法使 {{dut}} 过载（{{of}} Mpps 的 {{share}}% 高于{chinese} {{top}} Mpps）",
        )
        for english, chinese in (
            ("what the line carries,", "线路所能承载的"),
            ("what was asked for,", "所设定的最高速率"),
            ("its ceiling of", "其上限"),
        )
    ),
    (
        rf"not applicable: frames of (?P<frame>\w+): the tester cannot overload (?P<dut>.*) \(its limit is not known: "
        rf"at least (?P<of>{N}) Mpps\)",
        "不适用：{frame}帧：发生器无法使 {dut} 过载（其上限未知：至少为 {of} Mpps）",
    ),
    (
        r"frames of (?P<frame>\w+): (?P<dut>.*) has no throughput, so no share of it can be offered: look at the "
        r"trials of its search",
        "{frame}帧：{dut} 没有吞吐量，因此无法按其比例发送：请查看其搜索中的各次试验",
    ),
)
NO_BED = (
    (
        r"(?P<dut>.*) has started but forwards nothing from (?P<from>\S+) to (?P<to>\S+); its last words: "
        r"(?P<words>.*)",
        "{dut} 已启动，但不从 {from} 向 {to} 转发任何包；其最后的输出：{words}",
    ),
    (
        r"(?P<dut>.*) has started but forwards nothing from (?P<from>\S+) to (?P<to>\S+) and from \S+ to \S+; its last "
        r"words: (?P<words>.*)",
        "{dut} 已启动，但在 {from} 与 {to} 之间的两个方向上都不转发任何包；其最后的输出：{words}",
    ),
    (
        rf"only (?P<found>{N}) of (?P<n>{N}) huge pages of (?P<size>\d \w+) could be reserved: memory is short or "
        r"fragmented",
        "{n} 个 {size} 大页中只能预留 {found} 个：内存不足或碎片过多",
    ),
    (
        rf"(?P<n>{N}) more huge pages of (?P<size>\d \w+) needed, but memory is left for only (?P<left>{N}): request fewer",
        "还需要 {n} 个 {size} 大页，剩余内存只够 {left} 个：请减少用量",
    ),
    (
        r"(?P<what>.*) is not installed: run '(?P<command>.*)' \(package (?P<package>.*)\)",
        "{what} 未安装：请运行 {command}（软件包 {package}）",
    ),
    (r"此处不适用：(?P<why>.*)", "此处不适用：{why}"),  # the reason itself is in English
)
NO_EVIDENCE = (
    (
        r"threads that took a core, for how long, and times of interrupts: (?P<why>.*)",
        "谁占用了核、占用多久，以及各次中断的时刻：{why}",
    ),
    (r"this kernel has no tracefs", "此内核没有 tracefs"),
    (
        r"a private mount cannot be made \((?P<error>.*)\): run as root",
        "无法建立自己的挂载（{error}）：请以 root 运行",
    ),
    (r"tracefs cannot be mounted \((?P<error>.*)\): run as root", "无法挂载 tracefs（{error}）：请以 root 运行"),
    (r"tracefs cannot be used \((?P<error>.*)\)", "无法使用 tracefs（{error}）"),
    (r"its ring cannot be read \((?P<error>.*)\)", "无法读取其记录（{error}）"),
    (
        rf"the kernel's trace ring overflowed: (?P<n>{N}) older switches and interrupts are missing",
        "内核的记录空间不足，较早的 {n} 次线程切换和中断未能保留",
    ),
    (r"frequency of the cores: this kernel has no cpufreq for them", "核的频率：此内核不为这些核提供 cpufreq"),
    (r"threads of (?P<program>\S+): it is no longer running", "{program} 的线程：它已不在运行"),
    (
        rf"(?P<program>\S+) stalled more often than it records: stalls before (?P<ns>{N}) ns are missing",
        "{program} 的停顿次数超出其所能记录：{ns} ns 之前的停顿缺失",
    ),
    (
        rf"(?P<program>\S+) stalled more often than it records: stalls of the first (?P<s>{N}) s are missing",
        "{program} 的停顿次数超出其所能记录：最初 {s} s 内的停顿缺失",
    ),
    (
        r"frames missed by the devices of (?P<program>\S+)'s ports (?P<ports>.*): these devices do not count them",
        "{program} 端口 {ports} 的设备漏收的帧数：这些设备不统计",
    ),
    (
        r"dl3d runs on another machine with its own clock: its stalls cannot be matched with the loss",
        "dl3d 在另一台机器上按另一时钟运行：其停顿无法与丢包时刻对照",
    ),
    (
        rf"offset between the clocks of both machines, to better than (?P<us>{N}) us",
        "两台机器的时钟之差，精度高于 {us} µs 的部分",
    ),
    (
        r"the machine cannot be observed: (?P<error>.*); look at (?P<file>\S+)",
        "无法采集此机器的信息：{error}；请查看 {file}",
    ),
    (
        r"the observations of the machine cannot be parsed: (?P<error>.*); look at (?P<file>\S+)",
        "无法解析采集到的信息：{error}；请查看 {file}",
    ),
    (
        r"(?P<at>\S+): (?P<why>(threads that took|the kernel's|frequency|threads|the machine|the observations).*)",
        "{at}：{why}",
    ),
)
TABLES = {Language.ZH: (*NO_RESULT, *NO_BED, *NO_EVIDENCE)}


def value_text(name: str, value: str, words: Words) -> str:
    """A matched part of a sentence, translated if it has its own text."""
    if name == "reason":
        return reason_text(value, words)
    if name == "noise":
        return noise_text([value], words)
    if name == "why":
        return sentence_text(value, words)
    if name == "frame":
        return words.frame(value)
    return words.place(value) if name == "place" else value


def sentence_text(sentence: str, words: Words) -> str:
    """A sentence of a record as shown on the page."""
    for pattern, text in TABLES.get(words.language, ()):
        if found := re.fullmatch(pattern, sentence):
            return text.format(**{name: value_text(name, value, words) for name, value in found.groupdict().items()})
    return sentence
