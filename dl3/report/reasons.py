"""Why a trial is INVALID or a machine noisy, in the report's language; records keep the sentence in English."""

import re
from collections.abc import Iterable

from dl3.report.stalls import NUMBER, OF_STALLS, SHARE
from dl3.report.words import Words

# Text keys and the sentences of dl3/trial/accounting.py; a sentence that matches none is shown as it is.
OF_TRIALS = (
    ("why.left_out", rf"the generator skipped (?P<n>{NUMBER}) frames \((?P<share>{SHARE})\) that were due"),
    ("why.nothing", r"the generator sent nothing"),
    ("why.below", rf"stream '(?P<stream>.*)' was offered (?P<share>{SHARE}) below its rate"),
    ("why.above", rf"stream '(?P<stream>.*)' was offered (?P<share>{SHARE}) above its rate"),
    ("why.missed", rf"the generator's ports dropped (?P<n>{NUMBER}) frames that were not polled in time"),
    (
        "why.paused",
        rf"(?P<n>{NUMBER}) frames are missing, and the generator stalled (?P<times>{NUMBER}) times for longer than its "
        rf"ring can buffer, up to (?P<us>{NUMBER}) us",
    ),
    ("why.link", r"port '(?P<port>.*)' of the generator lost its link"),
    ("why.apart", rf"the TSCs of two workers are (?P<ns>{NUMBER}) ns apart"),
    ("why.burst", rf"(?P<n>{NUMBER}) of (?P<frames>{NUMBER}) frames were skipped because the generator was late"),
    (
        "why.sum",
        rf"stream '(?P<stream>.*)' sent (?P<sent>{NUMBER}), received (?P<received>{NUMBER}) and lost "
        rf"(?P<lost>{NUMBER}) frames",
    ),
    (
        "why.gaps",
        rf"stream '(?P<stream>.*)' lost (?P<lost>{NUMBER}) frames, but (?P<gaps>{NUMBER}) by the gaps in its sequence numbers",
    ),
    (
        "why.stalled",
        rf"workers of (?P<program>\S+) stalled (?P<n>{NUMBER}) times for longer than (?P<bridged>{NUMBER}) us, up to "
        rf"(?P<us>{NUMBER}) us; subscribers can have lost (?P<share>{SHARE}) of their rates, more than (?P<most>{SHARE})",
    ),
    ("why.log", rf"(?P<n>{NUMBER}) frames came when the log of arrivals was full"),
    ("why.restarted", r"dl3d's counters decreased: it was restarted during the trial"),
    (
        "why.passage",
        rf"dl3d received (?P<received>{NUMBER}), injected (?P<injected>{NUMBER}) and copied (?P<copied>{NUMBER}) packets, "
        rf"sent (?P<sent>{NUMBER}), punted (?P<punted>{NUMBER}) and dropped (?P<dropped>{NUMBER}) by name; "
        rf"(?P<missing>{NUMBER}) are missing",
    ),
)
# The same for dl3/host/noise.py, dl3/bench/stability.py and dl3/bench/throughput.py.
OF_NOISE = (
    ("noise.steal", rf"the hypervisor took (?P<share>{SHARE}) of core (?P<core>\d+)"),
    ("noise.share", rf"a probe received only (?P<share>{SHARE}) of core (?P<core>\d+)"),
    ("noise.stalls", rf"a probe was preempted on core (?P<core>\d+) for (?P<us>{NUMBER}) us"),
    ("noise.frequency", rf"core (?P<core>\d+) went from (?P<before>{NUMBER}) to (?P<after>{NUMBER}) MHz"),
    (
        "noise.distance",
        rf"a cache line took (?P<before>{NUMBER}) ns before and (?P<after>{NUMBER}) ns after from core to core "
        r"and back",
    ),
    (
        "noise.interrupted",
        rf"(?P<n>{NUMBER}) of (?P<all>{NUMBER}) trials were INVALID because the generator fell behind at rates that it "
        r"reached in others",
    ),
    (
        "noise.spread",
        rf"the results of (?P<n>{NUMBER}) searches differ by (?P<apart>{SHARE}) at a resolution of "
        rf"(?P<resolution>{SHARE})",
    ),
    ("noise.cut", rf"the search was ended before it reached its resolution of (?P<resolution>{SHARE})"),
    (
        "noise.starved",
        rf"the generator fell behind (?P<n>{NUMBER}) times, even at (?P<low>[\d.]+) Mpps, though it has reached "
        r"(?P<reached>[\d.]+): give it a core that nothing else uses",
    ),
)
SENTENCES = (*OF_TRIALS, *OF_NOISE, *OF_STALLS)


def reported(sentence: str, words: Words) -> str | None:
    """The sentence after the colon of a reason; None if it is unknown."""
    for key, pattern in SENTENCES:
        found = re.fullmatch(pattern, sentence)
        if found:
            values = found.groupdict()
            return words(f"{key}.by" if values.get("who") else key, **values)
    return None


def reason_text(reason: str, words: Words) -> str:
    """Why a trial is INVALID, for the page."""
    word, colon, rest = reason.partition(": ")
    return words("reason", name=words.name("reason", word), text=reported(rest, words) or rest) if colon else reason


def noise_text(reasons: Iterable[str], words: Words) -> str:
    """Why a machine was noisy, for the page: without the word before the colon, which the sentence repeats."""
    return words("list.semicolon").join(reported(reason.partition(": ")[2], words) or reason for reason in reasons)
