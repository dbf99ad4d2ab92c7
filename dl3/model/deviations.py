"""Deviations of the tests from their RFCs, one sentence each, in both languages."""

import re
from collections.abc import Mapping, Sequence

from dl3.model.campaign import Effort, TestName, Text

RFC_SECONDS = 60.0  # RFC 2544, 24
LATENCY_SECONDS = 120.0  # 26.2
BURST_SECONDS = 2.0  # 26.4: minimum
BURSTS = 50
ENOUGH = 0.999  # fraction of the required time: the last frame is due before the end of the trial
FORWARDING_SECONDS = 30.0  # RFC 2889, 5.1: recommended
RESET_LOAD = Text(
    en="Resets are made at half of the throughput instead of all of it (RFC 2544, 26.6), so that no other loss is "
    "counted with them.",
    zh="复位测试在吞吐量的一半下进行，而不是全部吞吐量（RFC 2544 第 26.6 节），以免计入其他丢包。",
)
LATENCY_OF_ALL = Text(
    en="Latency is that of all frames of one trial instead of one tagged frame in each of 20 trials (RFC 2544, 26.2).",
    zh="时延取自一次试验的全部帧，而不是 20 次试验中各一个标记帧（RFC 2544 第 26.2 节）。",
)


# The minimum trial duration required by the RFC, in seconds, and the section.
TIMES: Mapping[TestName, tuple[float, str]] = {
    "throughput": (RFC_SECONDS, "RFC 2544, 24"),
    "latency": (LATENCY_SECONDS, "RFC 2544, 26.2"),
    "frame loss": (RFC_SECONDS, "RFC 2544, 24"),
    "back-to-back": (BURST_SECONDS, "RFC 2544, 26.4"),
    "recovery": (RFC_SECONDS, "RFC 2544, 26.5"),
    "forwarding": (FORWARDING_SECONDS, "RFC 2889, 5.1"),
}


OF_TIME = re.compile(r"Trials take .* s instead of .* s \(RFC .*\)\.")


def is_of_time(text: Text) -> bool:
    """Whether the text states that trials are too short."""
    return OF_TIME.fullmatch(text.en) is not None


def of_times(seconds: Sequence[float], test: TestName) -> list[Text]:
    """State that trials of these durations are shorter than required; empty if none is."""
    wanted, place = TIMES.get(test, (0.0, ""))
    if min(seconds, default=wanted) >= ENOUGH * wanted:
        return []
    low, high = (f"{some:.3g}" if some < 100 else f"{some:,.0f}" for some in (min(seconds), max(seconds)))
    spans = {joint: low if low == high else f"{low} {joint} {high}" for joint in ("to", "至")}
    return [
        Text(
            en=f"Trials take {spans['to']} s instead of {wanted:g} s ({place}).",
            zh=f"每次试验为 {spans['至']} 秒，而不是 {wanted:g} 秒（{place.replace(', ', ' 第 ')} 节）。",
        )
    ]


def of_goals(effort: Effort) -> list[Text]:
    """State that a throughput goal allows loss."""
    lossy = ", ".join(f"{goal:.3g}" for goal in effort.goals if goal > 0)
    if not lossy:
        return []
    return [
        Text(
            en=f"A loss ratio of {lossy} is a goal too; RFC 2544 (26.1) knows none but no loss.",
            zh=f"另以丢包率 {lossy} 为目标；RFC 2544（第 26.1 节）只以零丢包为目标。",
        )
    ]


def of_exceed(effort: Effort) -> list[Text]:
    """State that some trials at a rate may exceed the loss goal."""
    if not effort.exceed:
        return []
    percent = f"{effort.exceed * 100:g}"
    return [
        Text(
            en=f"Up to {percent} % of the trial time at a rate may lose more than its goal (RFC 9971's exceed ratio); "
            "RFC 2544 (26.1) allows none.",
            zh=f"同一速率下允许至多 {percent}% 的试验时间超出目标丢包率（RFC 9971 的 exceed ratio）；RFC 2544"
            "（第 26.1 节）不允许。",
        )
    ]


def of_bursts(effort: Effort) -> list[Text]:
    """State that fewer bursts are searched than required."""
    n = effort.repetitions
    if n >= BURSTS:
        return []
    said = f"once instead of {BURSTS} times" if n == 1 else f"{n} times instead of {BURSTS}"
    return [
        Text(
            en=f"The longest burst is searched {said} (RFC 2544, 26.4).",
            zh=f"最长突发搜索 {n} 次，而不是 {BURSTS} 次（RFC 2544 第 26.4 节）。",
        )
    ]


def beside_time(effort: Effort, test: TestName) -> list[Text]:
    """All deviations except trial duration."""
    rules: Mapping[TestName, list[Text]] = {
        "throughput": [*of_goals(effort), *of_exceed(effort)],
        "latency": [LATENCY_OF_ALL],
        "back-to-back": of_bursts(effort),
        "reset": [RESET_LOAD],
    }
    return rules.get(test, [])


def deviations(effort: Effort, test: TestName) -> Sequence[Text]:
    """All deviations of one test; empty if no RFC covers the test."""
    return [*of_times((effort.seconds,), test), *beside_time(effort, test)]


def as_rfc(test: TestName) -> Effort:
    """The effort required by the test's RFC; bursts may be up to 30 s long."""
    seconds = {"latency": LATENCY_SECONDS, "back-to-back": 30.0, "forwarding": FORWARDING_SECONDS}
    repetitions = BURSTS if test == "back-to-back" else 1
    return Effort(seconds=seconds.get(test, RFC_SECONDS), repetitions=repetitions, method="binary")
