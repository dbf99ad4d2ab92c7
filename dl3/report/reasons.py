"""Why a trial is INVALID, in the report's language: a record keeps the sentence as it was told in English."""

import re

from dl3.report.words import Words

NUMBER, SHARE = r"[\d,]+", r"[\d.]+%"
# Keys of texts and the sentences of dl3/trial/law.py; what none of them fits stays as it is.
SENTENCES = (
    ("why.left_out", rf"the generator left out (?P<n>{NUMBER}) frames \((?P<share>{SHARE})\) that were due"),
    ("why.nothing", r"the generator sent nothing"),
    ("why.below", rf"stream '(?P<stream>.*)' was offered (?P<share>{SHARE}) below its rate"),
    ("why.above", rf"stream '(?P<stream>.*)' was offered (?P<share>{SHARE}) above its rate"),
    ("why.missed", rf"the generator's ports dropped (?P<n>{NUMBER}) frames that nobody polled"),
    (
        "why.paused",
        rf"(?P<n>{NUMBER}) frames are missing and the generator paused (?P<times>{NUMBER}) times for longer than its "
        rf"ring holds, at most (?P<us>{NUMBER}) us",
    ),
    ("why.link", r"port '(?P<port>.*)' of the generator lost its link"),
    ("why.apart", rf"the TSCs of two lanes are (?P<ns>{NUMBER}) ns apart"),
)


def told(sentence: str, words: Words) -> str:
    """The sentence behind the colon of a reason."""
    for key, pattern in SENTENCES:
        found = re.fullmatch(pattern, sentence)
        if found:
            return words(key, **found.groupdict())
    return sentence


def reason_text(reason: str, words: Words) -> str:
    """A reason as the page shows it."""
    word, colon, rest = reason.partition(": ")
    return words("reason", name=words.name("reason", word), text=told(rest, words)) if colon else reason
