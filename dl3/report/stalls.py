"""What stalls of the generator did to trials and results, in both languages."""

from collections.abc import Iterator

from dl3.model.trial import Trial
from dl3.report.units import percent
from dl3.report.words import Words

NUMBER, SHARE = r"-?[\d,]+", r"[\d.]+%"
STALLED = rf"the generator stalled (?P<n>{NUMBER}) times for up to (?P<us>{NUMBER}) us"
BY = r"(?:, mostly because (?P<who>.+) had its core)?"
# Text keys and the sentences of dl3/trial/stalls.py and dl3/bench/disturbed.py; with a `who` the key ends in `.by`.
OF_STALLS = (
    (
        "stall.open",
        rf"{STALLED}{BY}; they can have cost (?P<frames>{NUMBER}) of the (?P<lost>{NUMBER}) lost frames, so the loss of "
        r"the device is not known",
    ),
    (
        "stall.much",
        rf"{STALLED}{BY}; they can have cost (?P<frames>{NUMBER}) frames \((?P<share>{SHARE})\), more than "
        rf"(?P<most>{SHARE})",
    ),
    (
        "stall.short",
        rf"(?P<n>{NUMBER}) of (?P<all>{NUMBER}) trials were shortened to as little as (?P<ms>{NUMBER}) ms, because the "
        rf"generator stalled for up to (?P<us>{NUMBER}) us{BY}",
    ),
    ("stall.cost", rf"stalls of the generator can have cost up to (?P<share>{SHARE}) of the frames behind the result"),
    (
        "stall.pairs",
        rf"(?P<n>{NUMBER}) of (?P<all>{NUMBER}) pairs have no result, because all their trials were INVALID",
    ),
)
ENGLISH = {
    "reason.stalls": "generator stalled",
    "stall.open": "the generator stalled {n} times for up to {us} µs and may have caused {frames} of the {lost} lost "
    "frames, so the device's own loss is unknown",
    "stall.open.by": "the generator stalled {n} times for up to {us} µs, mostly because {who} had its core, and may have "
    "caused {frames} of the {lost} lost frames, so the device's own loss is unknown",
    "stall.much": "the generator stalled {n} times for up to {us} µs, which may have cost {frames} frames ({share}); at "
    "most {most} is acceptable",
    "stall.much.by": "the generator stalled {n} times for up to {us} µs, mostly because {who} had its core, which may "
    "have cost {frames} frames ({share}); at most {most} is acceptable",
    "stall.short": "{n} of {all} trials were shortened, to {ms} ms at the shortest, because the generator stalled for up "
    "to {us} µs",
    "stall.short.by": "{n} of {all} trials were shortened, to {ms} ms at the shortest, because the generator stalled for "
    "up to {us} µs, mostly because {who} had its core",
    "stall.cost": "generator stalls may have cost up to {share} of the frames of this result",
    "stall.pairs": "{n} of {all} pairs have no result because all of their trials were INVALID",
    "stall.beside.short": "{ms} ms instead of {s} s because of stalls",
    "stall.beside.held": "{frames} frames still in the device count as lost",
    "stall.beside.error": "stalls may have cost up to {share} %",
    "explain.stalled": "The generator stalled {n:,} times, {us:,.0f} µs in total and {longest:,.0f} µs at most, which may "
    "have cost up to {frames:,} packets ({share:.2%} of those received)",
    "explain.stalled.by": "The generator stalled {n:,} times, {us:,.0f} µs in total and {longest:,.0f} µs at most, mostly "
    "because {who} had its core, which may have cost up to {frames:,} packets ({share:.2%} of those received)",
    "explain.shortened": "The trial took {seconds:.4g} s instead of {ordered:.4g} s because of generator stalls",
    "explain.shortened.held": "The trial took {seconds:.4g} s instead of {ordered:.4g} s because of generator stalls; "
    "{held:,} packets were still in the device when it ended and count as lost, because a longer trial would have lost "
    "them",
}
CHINESE = {
    "reason.stalls": "发生器停顿",
    "stall.open": "发生器停顿 {n} 次，最长 {us} µs；丢失的 {lost} 帧中可能有多达 {frames} 帧由此造成，"
    "因此被测设备自身的丢包不明",
    "stall.open.by": "发生器停顿 {n} 次，最长 {us} µs，主要是其核被 {who} 占用；丢失的 {lost} 帧中可能有多达 {frames} 帧"
    "由此造成，因此被测设备自身的丢包不明",
    "stall.much": "发生器停顿 {n} 次，最长 {us} µs，可能因此少收 {frames} 帧（{share}），超过允许的 {most}",
    "stall.much.by": "发生器停顿 {n} 次，最长 {us} µs，主要是其核被 {who} 占用，可能因此少收 {frames} 帧（{share}），"
    "超过允许的 {most}",
    "stall.short": "发生器有停顿，最长 {us} µs，因此 {all} 次试验中有 {n} 次缩短，最短为 {ms} ms",
    "stall.short.by": "发生器有停顿，最长 {us} µs，主要是其核被 {who} 占用，因此 {all} 次试验中有 {n} 次缩短，"
    "最短为 {ms} ms",
    "stall.cost": "因发生器停顿，此结果可能少收至多 {share} 的帧",
    "stall.pairs": "{all} 对测量中有 {n} 对没有结果，因为其试验均无效",
    "stall.beside.short": "因停顿由 {s} s 缩短为 {ms} ms",
    "stall.beside.held": "仍滞留在被测设备中的 {frames} 帧按丢失计",
    "stall.beside.error": "停顿可能造成至多 {share}% 的误差",
    "explain.stalled": "发生器停顿 {n:,} 次，共 {us:,.0f} µs，最长 {longest:,.0f} µs，可能因此少收至多 {frames:,} 个包"
    "（为收到的 {share:.2%}）",
    "explain.stalled.by": "发生器停顿 {n:,} 次，共 {us:,.0f} µs，最长 {longest:,.0f} µs，主要是其核被 {who} 占用，"
    "可能因此少收至多 {frames:,} 个包（为收到的 {share:.2%}）",
    "explain.shortened": "因发生器停顿，此试验由 {ordered:.4g} s 缩短为 {seconds:.4g} s",
    "explain.shortened.held": "因发生器停顿，此试验由 {ordered:.4g} s 缩短为 {seconds:.4g} s；结束时仍有 {held:,} 个包"
    "滞留在被测设备中，按丢失计，因为更长的试验会丢失这些包",
}


def stall_texts(trial: Trial, words: Words) -> Iterator[str]:
    """What stalls did to a trial that counts: its length, what it left behind, its error. Of an INVALID one its length."""
    if trial.ordered_s:
        yield words("stall.beside.short", ms=f"{trial.seconds * 1000:,.0f}", s=f"{trial.ordered_s:.4g}")
    if trial.held and not trial.invalid:
        yield words("stall.beside.held", frames=f"{trial.held:,}")
    if trial.error_share and not trial.invalid:
        yield words("stall.beside.error", share=percent(trial.error_share, 2))


def beside_trial(text: str, trial: Trial, words: Words) -> str:
    """A trial's verdict, with what stalls did to the trial."""
    return words("list.semicolon").join((text, *stall_texts(trial, words)))
