"""What a figure of a comparison refers to, in the report's language; figures keep it in English, for programs."""

import re

from dl3.report.measures import Figure
from dl3.report.names import goal_text
from dl3.report.words import Words


def variant_text(figure: Figure, words: Words) -> str:
    """'huge pages 4 GiB, flows 1000'."""

    def named(found: re.Match[str]) -> str:
        comma = words("list.parts") if found["comma"] else ""
        return f"{comma}{words.name('parameter', found['key'])} {words.quoted(found['value'])}"

    return re.sub(r"(?P<comma>^|, )(?P<key>[^=,]+)=(?P<value>.*?)(?=, [^=,]+=|$)", named, figure.variant)


def at_text(figure: Figure, words: Words) -> str:
    """A goal, a load, what was reset, or the device compared with."""
    at = figure.at
    if found := re.fullmatch(r"loss <= (\S+)", at):
        return goal_text(float(found[1]), words)
    if found := re.fullmatch(r"load (\d+)%", at):
        return words("load.share", percent=found[1])
    if found := re.fullmatch(r"(\d+) packet/s", at):
        return words("load.rate", mpps=f"{int(found[1]) / 1e6:.3g}")
    if found := re.fullmatch(r"(.+) against (.+)", at):
        return words("figure.against", test=words.name("test", found[1]), peer=found[2])
    return words.name("reset", at)
