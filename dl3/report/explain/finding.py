"""The building blocks of an explanation: findings, each one sentence with figures, and advice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dl3.report.reasons import reason_text
from dl3.report.sentences import sentence_text
from dl3.report.words import Words

Topic = Literal["invalid", "stalls", "place", "time", "worker", "unexplained", "counters", "missing", "headroom"]
Value = str | int | float


@dataclass(frozen=True)
class Finding:
    """One finding about a trial; `key` selects its sentence, `advice` what to do about it."""

    topic: Topic
    key: str
    values: Mapping[str, Value] = field(default_factory=dict)
    frames: int = 0  # lost frames that it covers
    advice: str = ""  # empty: nothing is certain to help


def value_text(name: str, value: Value, words: Words) -> Value:
    """A value in the report's language, if it is a word."""
    if not isinstance(value, str):
        return value
    if name == "place":
        return words.place(value)
    if name == "sentence":
        return sentence_text(value, words)
    return reason_text(value, words) if name == "reason" else value


def derived(values: Mapping[str, Value], words: Words) -> dict[str, str]:
    """The parts of a sentence for more than one stall and more than one thread."""
    found = {"times": "", "also": ""}
    if values.get("n", 1) != 1:
        found["times"] = words("explain.times", n=values["n"])
    if values.get("others"):
        found["also"] = words("explain.also", others=values["others"])
    return found


def sentence(finding: Finding, words: Words) -> str:
    """A finding as a sentence in the report's language."""
    values = {name: value_text(name, value, words) for name, value in finding.values.items()}
    text = words(f"explain.{finding.key}", **values, **derived(values, words))
    if not finding.advice:
        return words("explain.alone", text=text)
    return words("explain.advised", text=text, advice=words(f"advice.{finding.advice}", **values))


def plain(finding: Finding, words: Words) -> dict[str, object]:
    """A finding in machine-readable form."""
    reported = {"topic": finding.topic, "frames": finding.frames, "text": sentence(finding, words)}
    return reported | {"key": finding.key, "advice": finding.advice, "values": dict(finding.values)}
