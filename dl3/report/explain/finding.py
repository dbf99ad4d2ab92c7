"""What an explanation is made of: one sentence each, with the figures in it, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dl3.report.reasons import reason_text
from dl3.report.sentences import sentence_text
from dl3.report.words import Words

Topic = Literal["invalid", "place", "time", "worker", "unexplained", "counters", "missing", "headroom"]
Value = str | int | float


@dataclass(frozen=True)
class Finding:
    """One thing that is known of a trial; `key` names its sentence, `advice` what to do about it."""

    topic: Topic
    key: str
    values: Mapping[str, Value] = field(default_factory=dict)
    frames: int = 0  # lost ones that it speaks of
    advice: str = ""  # empty: nothing that helps for sure


def value_text(name: str, value: Value, words: Words) -> Value:
    """A value in the report's language, where it is a word."""
    if not isinstance(value, str):
        return value
    if name == "place":
        return words.place(value)
    if name == "sentence":
        return sentence_text(value, words)
    return reason_text(value, words) if name == "reason" else value


def derived(values: Mapping[str, Value], words: Words) -> dict[str, str]:
    """What is said of more than one pause, and of more than one thread."""
    found = {"times": "", "also": ""}
    if values.get("n", 1) != 1:
        found["times"] = words("explain.times", n=values["n"])
    if values.get("others"):
        found["also"] = words("explain.also", others=values["others"])
    return found


def sentence(finding: Finding, words: Words) -> str:
    """A finding in the language of the words."""
    values = {name: value_text(name, value, words) for name, value in finding.values.items()}
    text = words(f"explain.{finding.key}", **values, **derived(values, words))
    if not finding.advice:
        return words("explain.alone", text=text)
    return words("explain.advised", text=text, advice=words(f"advice.{finding.advice}", **values))


def plain(finding: Finding, words: Words) -> dict[str, object]:
    """A finding for programs."""
    reported = {"topic": finding.topic, "frames": finding.frames, "text": sentence(finding, words)}
    return reported | {"key": finding.key, "advice": finding.advice, "values": dict(finding.values)}
