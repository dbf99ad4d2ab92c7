"""Where a test is not made as its RFC wants it, a sentence each in both languages."""

from collections.abc import Sequence

from dl3.model.campaign import Effort, TestName, Text

RFC_SECONDS = 60.0  # RFC 2544, 24
LATENCY_SECONDS = 120.0  # 26.2
LATENCY_TRIALS = 20
BURST_SECONDS = 2.0  # 26.4: at least
BURSTS = 50
RESET_LOAD = Text(
    en="Resets are made at half of the throughput instead of all of it (RFC 2544, 26.6), so that no other loss is "
    "counted with them.",
    zh="复位测试在吞吐量的一半下进行，而不是全部吞吐量（RFC 2544 第 26.6 节），以免计入其他丢包。",
)
LATENCY_OF_ALL = Text(
    en="Latency is that of all frames of one trial instead of one tagged frame in each of 20 trials (RFC 2544, 26.2).",
    zh="时延取自一次试验的全部帧，而不是 20 次试验中各一个标记帧（RFC 2544 第 26.2 节）。",
)


def shorter(effort: Effort, wanted: float, section: str) -> list[Text]:
    """About the duration of a trial."""
    if effort.seconds >= wanted:
        return []
    seconds = f"{effort.seconds:g}"
    return [
        Text(
            en=f"Trials take {seconds} s instead of {wanted:g} s (RFC 2544, {section}).",
            zh=f"每次试验为 {seconds} 秒，而不是 {wanted:g} 秒（RFC 2544 第 {section} 节）。",
        )
    ]


def throughput(effort: Effort) -> list[Text]:
    """RFC 2544, 24 and 26.1; RFC 9971 has terms of its own."""
    lossy = [goal for goal in effort.goals if goal > 0]
    found = shorter(effort, RFC_SECONDS, "24")
    if lossy:
        goals = ", ".join(f"{goal:.3g}" for goal in lossy)
        found.append(
            Text(
                en=f"A loss ratio of {goals} is a goal too; RFC 2544 (26.1) knows none but no loss.",
                zh=f"另以丢包率 {goals} 为目标；RFC 2544（第 26.1 节）只以零丢包为目标。",
            )
        )
    return found


def latency(effort: Effort) -> list[Text]:
    """RFC 2544, 26.2."""
    return [*shorter(effort, LATENCY_SECONDS, "26.2"), LATENCY_OF_ALL]


def frame_loss(effort: Effort) -> list[Text]:
    """RFC 2544, 26.3."""
    return shorter(effort, RFC_SECONDS, "24")


def back_to_back(effort: Effort) -> list[Text]:
    """RFC 2544, 26.4."""
    found = shorter(effort, BURST_SECONDS, "26.4")
    if effort.repetitions < BURSTS:
        n = effort.repetitions
        found.append(
            Text(
                en=f"The longest burst is searched {n} times instead of {BURSTS} (RFC 2544, 26.4).",
                zh=f"最长突发搜索 {n} 次，而不是 {BURSTS} 次（RFC 2544 第 26.4 节）。",
            )
        )
    return found


def recovery(effort: Effort) -> list[Text]:
    """RFC 2544, 26.5."""
    if effort.seconds >= RFC_SECONDS:
        return []
    seconds = f"{effort.seconds:g}"
    return [
        Text(
            en=f"The overload lasts {seconds} s instead of {RFC_SECONDS:g} s (RFC 2544, 26.5).",
            zh=f"过载持续 {seconds} 秒，而不是 {RFC_SECONDS:g} 秒（RFC 2544 第 26.5 节）。",
        )
    ]


def reset(_effort: Effort) -> list[Text]:
    """RFC 2544, 26.6."""
    return [RESET_LOAD]


def forwarding(effort: Effort) -> list[Text]:
    """RFC 2889, 5.1: trials of 30 s are recommended."""
    wanted = 30.0
    if effort.seconds >= wanted:
        return []
    seconds = f"{effort.seconds:g}"
    return [
        Text(
            en=f"Trials take {seconds} s instead of {wanted:g} s (RFC 2889, 5.1).",
            zh=f"每次试验为 {seconds} 秒，而不是 {wanted:g} 秒（RFC 2889 第 5.1 节）。",
        )
    ]


RULES = {
    "throughput": throughput,
    "latency": latency,
    "frame loss": frame_loss,
    "back-to-back": back_to_back,
    "recovery": recovery,
    "reset": reset,
    "forwarding": forwarding,
}


def deviations(effort: Effort, test: TestName) -> Sequence[Text]:
    """All of one test; none where no RFC speaks of it."""
    rule = RULES.get(test)
    return rule(effort) if rule else []


def as_rfc(test: TestName) -> Effort:
    """The effort that the RFC wants of a test."""
    seconds = {"latency": LATENCY_SECONDS, "back-to-back": 30.0, "forwarding": 30.0}.get(test, RFC_SECONDS)
    return Effort(seconds=seconds, repetitions=BURSTS if test == "back-to-back" else 1, method="binary")
