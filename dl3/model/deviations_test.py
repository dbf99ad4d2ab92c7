"""What differs from the RFCs is said."""

from typing import get_args

import pytest

from dl3.model.campaign import Effort, TestName
from dl3.model.deviations import LATENCY_OF_ALL, RESET_LOAD, as_rfc, deviations


@pytest.mark.parametrize("test", get_args(TestName))
def the_rfc_s_own_effort_deviates_only_where_we_chose_so(test: TestName) -> None:
    wanted = {"latency": [LATENCY_OF_ALL], "reset": [RESET_LOAD]}.get(test, [])
    assert list(deviations(as_rfc(test), test)) == wanted


def says_what_is_shorter_and_rarer() -> None:
    told = [text.en for text in deviations(Effort(seconds=0.5, repetitions=3), "back-to-back")]
    assert told == [
        "Trials take 0.5 s instead of 2 s (RFC 2544, 26.4).",
        "The longest burst is searched 3 times instead of 50 (RFC 2544, 26.4).",
    ]
    assert "2 s instead of 60 s" in deviations(Effort(), "recovery")[0].en
    assert "0.005 is a goal too" in deviations(Effort(seconds=60, goals=(0, 0.005)), "throughput")[0].en


@pytest.mark.parametrize("test", get_args(TestName))
def says_it_in_both_languages(test: TestName) -> None:
    for text in deviations(Effort(seconds=0.1, goals=(0.0, 0.01)), test):
        assert text.en.endswith(".")
        assert text.zh.endswith("。")
