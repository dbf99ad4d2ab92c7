"""What a figure refers to, in both languages."""

from dataclasses import replace
from typing import Any

import pytest
from harness.records import Maker

from dl3.report.figure_words import at_text, variant_text
from dl3.report.measures import Figure, figures
from dl3.report.results import gather
from dl3.report.texts import words_in
from dl3.report.words import Language

EN, ZH = words_in(Language.EN), words_in(Language.ZH)


def figure(**changes: Any) -> Figure:
    return replace(figures(gather([Maker().result("64", 10e6)]))[0], **changes)


def names_parameters_with_their_values() -> None:
    made = figure(parameters="huge pages=4 GiB, host OS=Debian (bookworm), kernel 6.1, flows=1", job="one")
    assert variant_text(made, EN) == "huge pages 4 GiB, host OS Debian (bookworm), kernel 6.1, flows 1"
    assert variant_text(made, ZH) == "大页 4 GiB，操作系统 Debian (bookworm), kernel 6.1，流数 1"
    assert variant_text(figure(parameters="direction=meshed, flows=1", job="one"), ZH) == "方向 网状，流数 1"
    assert variant_text(figure(wire="memif"), ZH) == "链路 memif"


@pytest.mark.parametrize(
    ("at", "english", "chinese"),
    [
        ("loss <= 0", "zero loss", "零丢包"),
        ("loss <= 0.005", "at most 0.5 % loss", "丢包率 ≤ 0.5%"),
        ("load 50%", "50 % of the throughput", "吞吐量的 50%"),
        ("2500000 packet/s", "2.5 Mpps", "2.5 Mpps"),
        ("process", "process reset", "进程复位"),
        ("ceiling against l3fwd", "generator ceiling compared with l3fwd", "发生器上限，对比 l3fwd"),
        ("", "", ""),
    ],
)
def reports_what_else_a_question_has(at: str, english: str, chinese: str) -> None:
    assert (at_text(figure(at=at), EN), at_text(figure(at=at), ZH)) == (english, chinese)
