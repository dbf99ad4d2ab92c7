"""Reasons in both languages."""

import re

import pytest

from dl3.host.noise import Look, distance_reasons, frequency_reasons, probe_reasons, steal_reasons
from dl3.report.reasons import SENTENCES, noise_text, reason_text
from dl3.report.texts import words_in
from dl3.report.words import Language

TOLD = (
    ("late: the generator skipped 1,049,954 frames (25.32%) that were due", "1,049,954", "25.32%"),
    ("late: the generator sent nothing",),
    ("pacing: stream 'east' was offered 1.94% below its rate", "east", "1.94%"),
    ("pacing: stream 'east' was offered 1.94% above its rate", "east", "1.94%"),
    ("sink late: the generator's ports dropped 1,000 frames that were not polled in time", "1,000"),
    (
        "sink late: 12 frames are missing, and the generator stalled 3 times for longer than its ring can "
        "buffer, up to 5,000 us",
        "12",
        "3",
        "5,000",
    ),
    (
        "stalls: the generator stalled 5 times for up to 10,012 us; they can have cost 5,000 of the 6,000 lost frames, so "
        "the loss of the device is not known",
        *("5", "10,012", "5,000", "6,000"),
    ),
    (
        "stalls: the generator stalled 5 times for up to 10,012 us, mostly because make had its core; they can have cost "
        "5,000 frames (5.00%), more than 1%",
        *("5", "10,012", "make", "5,000", "5.00%", "1%"),
    ),
    (
        "gaps: workers of dl3d stalled 5 times for longer than 1,000 us, up to 191,068 us; subscribers can have lost 7.96% of "
        "their rates, more than 0.1%",
        *("dl3d", "5", "1,000", "191,068", "7.96%", "0.1%"),
    ),
    ("log: 1,200 frames came when the log of arrivals was full", "1,200"),
    ("link: port 'left' of the generator lost its link", "left"),
    ("clock: the TSCs of two workers are 230 ns apart", "230"),
    ("burst: 70 of 5,000 frames were skipped because the generator was late", "5,000", "70"),
    ("accounting: stream 'east' sent 1,000, received 990 and lost 11 frames", "east", "1,000", "990", "11"),
    ("accounting: stream 'east' lost 11 frames, but 12 by the gaps in its sequence numbers", "east", "11", "12"),
    ("accounting: dl3d's counters decreased: it was restarted during the trial",),
    (
        "accounting: dl3d received 1,000, injected 2 and copied 7 packets, sent 900, punted 30 and dropped 4 by name; "
        "-5 are missing",
        *("1,000", "2", "7", "900", "30", "4", "-5"),
    ),
)
NOISE = (
    *steal_reasons(Look(stolen={3: (0, 0)}), Look(stolen={3: (8, 100)})),
    *probe_reasons(Look(shares={1: 0.913}), Look(shares={0: 1.0}, pauses_us={0: 4312.0})),
    *frequency_reasons(Look(mhz={2: 3100.0}), Look(mhz={2: 2400.0})),
    *distance_reasons(Look(round_trip_ns=95.0), Look(round_trip_ns=480.0)),
    "interrupted: 7 of 12 trials were INVALID because the generator fell behind at rates that it reached in others",
    "stalls: 12 of 15 trials were shortened to as little as 50 ms, because the generator stalled for up to 10,012 us",
    "stall cost: stalls of the generator can have cost up to 0.61% of the frames behind the result",
    "pairs: 1 of 5 pairs have no result, because all their trials were INVALID",
    "spread: the results of 3 searches differ by 40.0% at a resolution of 0.5%",
    "time: the search was ended before it reached its resolution of 5.00%",
    "no result: the generator fell behind 9 times, even at 0.120 Mpps, though it has reached 14.200: give it a core "
    "that nothing else uses",
)


@pytest.mark.parametrize("reported", TOLD, ids=lambda reported: reported[0][:24])
def reports_each_reason_in_chinese_with_its_figures(reported: tuple[str, ...]) -> None:
    text = reason_text(reported[0], words_in(Language.ZH))
    assert reported[0].partition(": ")[2] not in text
    assert all(figure in text for figure in reported[1:])


@pytest.mark.parametrize("reported", NOISE, ids=lambda reported: reported[:24])
def reports_in_chinese_why_the_machine_was_noisy(reported: str) -> None:
    text = noise_text([reported], words_in(Language.ZH))
    assert re.search("[\u4e00-\u9fff]", text)
    assert sorted(re.findall(r"\d[\d.,]*", text)) == sorted(re.findall(r"\d[\d.,]*", reported))


def joins_what_made_the_machine_noisy() -> None:
    english, chinese = words_in(Language.EN), words_in(Language.ZH)
    assert noise_text([NOISE[0], "odd: as it was said"], english) == (
        "the hypervisor took 8.0% of core 3; odd: as it was said"
    )
    assert noise_text(NOISE[:2], chinese).count("；") == 1


def has_a_case_for_each_sentence() -> None:
    assert len(TOLD) + len(NOISE) == len(SENTENCES)


def leaves_unknown_values() -> None:
    assert reason_text("accounting: 1 is not 2", words_in(Language.ZH)).endswith("1 is not 2")
    assert reason_text("no colon", words_in(Language.ZH)) == "no colon"
