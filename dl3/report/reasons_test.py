"""Reasons in both languages."""

import pytest

from dl3.report.reasons import SENTENCES, reason_text
from dl3.report.texts import words_in
from dl3.report.words import Language

TOLD = (
    ("late: the generator left out 1,049,954 frames (25.32%) that were due", "1,049,954", "25.32%"),
    ("late: the generator sent nothing",),
    ("pacing: stream 'east' was offered 1.94% below its rate", "east", "1.94%"),
    ("pacing: stream 'east' was offered 1.94% above its rate", "east", "1.94%"),
    ("sink late: the generator's ports dropped 1,000 frames that nobody polled", "1,000"),
    (
        "sink late: 12 frames are missing and the generator paused 3 times for longer than its ring holds, "
        "at most 5,000 us",
        "12",
        "3",
        "5,000",
    ),
    ("link: port 'left' of the generator lost its link", "left"),
    ("clock: the TSCs of two lanes are 230 ns apart", "230"),
)


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told[0][:24])
def says_each_reason_in_chinese_with_its_figures(told: tuple[str, ...]) -> None:
    text = reason_text(told[0], words_in(Language.ZH))
    assert told[0].partition(": ")[2] not in text
    assert all(figure in text for figure in told[1:])


def has_a_case_for_each_sentence() -> None:
    assert len(TOLD) == len(SENTENCES)


def leaves_what_it_does_not_know() -> None:
    assert reason_text("law: 1 is not 2", words_in(Language.ZH)).endswith("1 is not 2")
    assert reason_text("no colon", words_in(Language.ZH)) == "no colon"
