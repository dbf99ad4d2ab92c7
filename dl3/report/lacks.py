"""What the measured machine lacked, by the findings in its records, and what that probably costs."""

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from dl3.report.markup import tag
from dl3.report.results import Results
from dl3.report.words import Words

FINDINGS = "findings"  # key of the facts; see dl3/bench/lacking.py
SEVERITIES = ("blocker", "loss", "speed")  # the worst first
Lack = tuple[str, str, str]  # check, severity, what was found

SLICE = "At 10 Gbit/s with 64-byte frames, a pause of 1 ms loses 12,800 frames, one of 4 ms 57,500."
SLICE_ZH = "10 Gbit/s、64 字节帧时，停顿 1 ms 丢失 12,800 帧，停顿 4 ms 丢失 57,500 帧。"
ENGLISH = {
    "lacks.title": "What this machine lacks",
    "lacks.note": "Found by dl3 host when the records were made; notes and BIOS settings are left out. The cost is what each "
    "of them usually causes, not a measurement.",
    "lacks.none": "dl3 host found nothing that this machine lacks.",
    "lacks.severity": "severity",
    "lacks.what": "what was found",
    "lacks.cost": "probable cost",
    "lacks.unknown": "unknown to this version",
    "severity.blocker": "blocker",
    "severity.loss": "loss",
    "severity.speed": "speed",
    "cost.c_states": "A worker that sleeps wakes up too late: the first frames after a pause are lost. None while it polls.",
    "cost.clocksource": "About 1 µs instead of 20 ns whenever a program reads the clock.",
    "cost.drivers": "A fraction of the speed of the network card, because frames pass through Linux.",
    "cost.duplicates": f"Isolation may have no effect. {SLICE}",
    "cost.frequency": "The rate at the beginning of a burst is that of a slow core; results of short trials vary.",
    "cost.housekeeping": f"Kernel threads and interrupts run on the core of a worker. {SLICE}",
    "cost.huge_pages": "More TLB misses per frame, which a large table feels most; with too few pages, dl3d does not start.",
    "cost.iommu": "Network cards cannot be used by vfio-pci; rates are those of other devices.",
    "cost.iommu_groups": "A network card can only be used together with the rest of its group.",
    "cost.irq_affinity": "Some microseconds of the worker per interrupt; longer softirqs lose frames if they exceed 138 µs.",
    "cost.irqbalance_bans": "Interrupts may move to the core of a worker during a trial: some microseconds each.",
    "cost.isolation_effect": f"Workers are not isolated. {SLICE}",
    "cost.ksm": "Page faults and TLB flushes in programs of virtual machines; pauses of some milliseconds lose frames.",
    "cost.misspelt_words": f"As if nothing were configured. {SLICE}",
    "cost.network_manager": "The interface may be configured, or its VFs removed, while it is measured.",
    "cost.no_isolation": f"Any thread may take the core of a worker. {SLICE}",
    "cost.no_nohz_full": "100 to 1,000 timer ticks per second of some microseconds: below 1 % of the rate, and latency peaks.",
    "cost.numa_balancing": "Page faults of workers: some microseconds each, in bursts.",
    "cost.pci_link": "The slot may limit the rate of small frames below that of the ports.",
    "cost.rps": "Softirqs of Linux on the core of a worker: they lose frames if they exceed 138 µs.",
    "cost.split_cores": "Up to half the rate of a worker while the other thread of its core is busy.",
    "cost.tuned": "Settings may change when tuned starts or stops; without isolcpus= other threads take the core of a worker.",
    "cost.unequal_sets": f"Threads, ticks or RCU callbacks still run on some cores of workers. {SLICE}",
    "cost.watchdogs": "An interrupt of some microseconds every few seconds, also on isolated cores: latency peaks.",
    "cost.wrong_node": "Each frame crosses the link between sockets: a lower rate, and more latency.",
}
CHINESE = {
    "lacks.title": "本机的不足",
    "lacks.note": "由 dl3 host 在记录时检查得出，不含说明性条目和 BIOS 设置。代价是各项通常造成的影响，并非实测。",
    "lacks.none": "dl3 host 没有发现本机的不足。",
    "lacks.severity": "严重程度",
    "lacks.what": "检查结果（记录原文）",
    "lacks.cost": "可能的代价",
    "lacks.unknown": "本版本无法识别",
    "severity.blocker": "阻断",
    "severity.loss": "丢包",
    "severity.speed": "速率",
    "cost.c_states": "睡眠的工作线程唤醒过晚，停顿后的首批帧会丢失；持续轮询时没有影响。",
    "cost.clocksource": "程序每次读取时钟约需 1 µs，而不是 20 ns。",
    "cost.drivers": "帧要经过 Linux，只能达到网卡速率的一小部分。",
    "cost.duplicates": f"隔离可能不起作用。{SLICE_ZH}",
    "cost.frequency": "突发开始时核的频率较低；短时试验的结果不稳定。",
    "cost.housekeeping": f"内核线程和中断会在工作线程的核上运行。{SLICE_ZH}",
    "cost.huge_pages": "每帧的 TLB 未命中增加，大表受影响最大；大页过少时 dl3d 无法启动。",
    "cost.iommu": "vfio-pci 无法使用网卡，所测为其他设备的速率。",
    "cost.iommu_groups": "网卡只能与同组的其他设备一起使用。",
    "cost.irq_affinity": "每次中断占用工作线程几微秒；软中断超过 138 µs 时会丢帧。",
    "cost.irqbalance_bans": "试验期间中断可能移到工作线程的核上，每次几微秒。",
    "cost.isolation_effect": f"工作线程没有被隔离。{SLICE_ZH}",
    "cost.ksm": "虚拟机中的程序会发生缺页和 TLB 刷新，停顿达数毫秒时会丢帧。",
    "cost.misspelt_words": f"相当于没有任何配置。{SLICE_ZH}",
    "cost.network_manager": "测试期间接口可能被配置，或者 VF 被删除。",
    "cost.no_isolation": f"任何线程都可能占用工作线程的核。{SLICE_ZH}",
    "cost.no_nohz_full": "每秒 100 至 1,000 次时钟中断，每次几微秒：占速率不到 1%，并造成时延尖峰。",
    "cost.numa_balancing": "工作线程发生缺页，每次几微秒，成批出现。",
    "cost.pci_link": "插槽可能使小帧的速率低于端口的速率。",
    "cost.rps": "Linux 的软中断在工作线程的核上运行，超过 138 µs 时会丢帧。",
    "cost.split_cores": "同一核的另一个线程繁忙时，工作线程最多损失一半速率。",
    "cost.tuned": "tuned 启动或停止时设置可能改变；没有 isolcpus= 时其他线程会占用工作线程的核。",
    "cost.unequal_sets": f"线程、时钟中断或 RCU 回调仍在部分工作线程的核上运行。{SLICE_ZH}",
    "cost.watchdogs": "每隔几秒一次几微秒的中断，隔离的核也不例外：造成时延尖峰。",
    "cost.wrong_node": "每帧都要跨越插槽间的链路：速率降低，时延增加。",
}


def lack_of(value: object) -> Lack | None:
    """One finding of a record; None if it is not of this form."""
    if not isinstance(value, Mapping):
        return None
    check, severity, what = (value.get(key) for key in ("check", "severity", "what"))
    if isinstance(check, str) and isinstance(severity, str) and isinstance(what, str):
        return check, severity, what
    return None


def lists_in(results: Results) -> Iterator[list[object]]:
    """The findings of each record that has them; older ones have not."""
    for record in results.records:
        found = record.facts.get(FINDINGS)
        if isinstance(found, list | tuple):
            yield list(found)


def lacks_of(results: Results) -> list[Lack]:
    """Each finding once, the worst first."""
    found = dict.fromkeys(lack for one in lists_in(results) for value in one if (lack := lack_of(value)))
    ranks = {severity: n for n, severity in enumerate(SEVERITIES)}
    return sorted(found, key=lambda one: ranks.get(one[1], len(ranks)))


def row(lack: Lack, words: Words) -> Element:
    """One finding."""
    check, severity, what = lack
    cost = words.name("cost", check)
    cells = (words.name("severity", severity), what, words("lacks.unknown") if cost == check else cost)
    return tag("tr", *(tag("td", cell) for cell in cells), data_check=check)


def lacks_section(results: Results, words: Words) -> list[Element]:
    """A table, a sentence if there is nothing, or nothing if no record has findings."""
    if not any(True for _ in lists_in(results)):
        return []
    lacks = lacks_of(results)
    if not lacks:
        return [tag("p", words("lacks.none"), class_="note", id="lacks")]
    head = tag("tr", *(tag("th", words(f"lacks.{key}"), scope="col") for key in ("severity", "what", "cost")))
    table = tag("table", tag("thead", head), tag("tbody", *(row(one, words) for one in lacks)), id="lacks")
    return [tag("h3", words("lacks.title")), tag("p", words("lacks.note"), class_="note"), table]
