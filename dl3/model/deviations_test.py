"""Deviations from the RFCs are reported."""

from typing import get_args

import pytest

from dl3.model.campaign import Effort, TestName
from dl3.model.deviations import LATENCY_OF_ALL, RESET_LOAD, as_rfc, deviations, is_of_time, of_times


@pytest.mark.parametrize("test", get_args(TestName))
def the_rfc_s_own_effort_deviates_only_where_we_chose_so(test: TestName) -> None:
    wanted = {"latency": [LATENCY_OF_ALL], "reset": [RESET_LOAD]}.get(test, [])
    assert list(deviations(as_rfc(test), test)) == wanted


def reports_what_is_shorter_and_rarer() -> None:
    reported = [text.en for text in deviations(Effort(seconds=0.5, repetitions=3), "back-to-back")]
    assert reported == [
        "Trials take 0.5 s instead of 2 s (RFC 2544, 26.4).",
        "The longest burst is searched 3 times instead of 50 (RFC 2544, 26.4).",
    ]
    once = [text.en for text in deviations(Effort(), "back-to-back")]
    assert once[-1] == "The longest burst is searched once instead of 50 times (RFC 2544, 26.4)."
    assert "2 s instead of 60 s" in deviations(Effort(), "recovery")[0].en
    lenient = deviations(Effort(seconds=60, exceed=0.5), "throughput")
    assert [text.en.partition(" of ")[0] for text in lenient] == ["Up to 50 %"]
    assert "0.005 is a goal too" in deviations(Effort(seconds=60, goals=(0, 0.005)), "throughput")[0].en


def reports_from_which_to_which_length_trials_are_shorter() -> None:
    (text,) = of_times((1.18, 0.26, 0.26, 0.45), "throughput")
    assert text.en == "Trials take 0.26 to 1.18 s instead of 60 s (RFC 2544, 24)."
    assert "每次试验为 0.26 至 1.18 秒" in text.zh
    assert is_of_time(text)
    assert "Trials take 0.00358 s instead of 2 s" in of_times((0.00358382,), "back-to-back")[0].en
    assert not is_of_time(LATENCY_OF_ALL)
    assert "Trials take 2 to 3,600 s" in of_times((2.0, 3600.0), "throughput")[0].en
    assert of_times((60.0, 61.0), "throughput") == of_times((), "throughput") == []
    assert of_times((59.999,), "throughput") == [], "its last frame was due before the end"


@pytest.mark.parametrize("test", get_args(TestName))
def reports_it_in_both_languages(test: TestName) -> None:
    for text in deviations(Effort(seconds=0.1, goals=(0.0, 0.01), exceed=0.1), test):
        assert text.en.endswith(".")
        assert text.zh.endswith("。")
