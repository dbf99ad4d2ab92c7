"""What the page and 'dl3 explain' say about stalls of the generator."""

import pytest

from dl3.model.evidence import Stalled
from dl3.report.explain import explain, findings
from dl3.report.explain.fake import trial
from dl3.report.stalls import CHINESE, ENGLISH, beside_trial
from dl3.report.texts import words_in
from dl3.report.words import Language

EN, ZH = words_in(Language.EN), words_in(Language.ZH)
STALLED = Stalled(n=2, us=9_012.0, longest_us=5_004.0, frames=90_000, who="make")
LATE = ("late: the generator skipped 90,000 frames (0.90%) that were due",)


def has_each_sentence_in_both_languages() -> None:
    assert ENGLISH.keys() == CHINESE.keys()


def explains_what_stalls_can_have_cost() -> None:
    made = trial({"unknown": 500_000}, stalled=STALLED)
    assert findings(made)[0].topic == "stalls"
    assert explain(made, EN)[0] == (
        "The generator stalled 2 times, 9,012 µs in total and 5,004 µs at most, mostly because make had its core, which "
        "may have cost up to 90,000 packets (0.95% of those received)."
    )
    assert "可能因此少收至多 90,000 个包（为收到的 0.95%）" in explain(made, ZH)[0]
    unknown = trial({"unknown": 500_000}, stalled=STALLED.model_copy(update={"who": ""}))
    assert "make" not in explain(unknown, EN)[0]


@pytest.mark.parametrize("stalled", [None, Stalled(), Stalled(n=3, us=9_000.0, longest_us=4_000.0)])
def says_nothing_of_stalls_that_cost_nothing(stalled: Stalled | None) -> None:
    made = trial({}, stalled=stalled)
    assert "stalls" not in [finding.topic for finding in findings(made)]
    assert beside_trial("valid", made, EN) == "valid"


def gives_an_invalid_trial_its_reason_only() -> None:
    made = trial({}, stalled=STALLED, invalid=LATE)
    assert "stalls" not in [finding.topic for finding in findings(made)]
    assert beside_trial("INVALID", made, EN) == "INVALID"


def explains_that_a_trial_was_shortened_and_what_it_left_behind() -> None:
    made = trial({}, ms=50, ordered_s=1.0)
    assert explain(made, EN)[0] == "The trial took 0.05 s instead of 1 s because of generator stalls."
    held = explain(trial({}, ms=50, ordered_s=1.0, held=7_000), EN)[0]
    assert "7,000 packets were still in the device when it ended and count as lost" in held
    assert "7,000 个包滞留在被测设备中，按丢失计" in explain(trial({}, ms=50, ordered_s=1.0, held=7_000), ZH)[0]


def says_it_beside_the_verdict() -> None:
    made = trial({}, ms=50, ordered_s=1.0, stalled=Stalled(n=1, us=300.0, longest_us=300.0, frames=3_000))
    assert beside_trial("valid", made, EN) == (
        "valid; 50 ms instead of 1 s because of stalls; stalls may have cost up to 0.60 %"
    )
    assert beside_trial("有效", made, ZH) == "有效；因停顿由 1 s 缩短为 50 ms；停顿可能造成至多 0.60% 的误差"
