"""Parsing of the plugin's readings, and the rates between them."""

import pytest

from dl3.model.fault import Fault
from dl3.model.sample import Reading, Sample, middle


def reads_the_line_that_the_plugin_writes() -> None:
    assert Reading.parse("0010 0009 2600000000 0300 0200\n") == Reading(10, 9, 2_600_000_000, 300, 200)


@pytest.mark.parametrize("text", ["", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "1 2 3 -4 5"])
def takes_half_a_line_for_none(text: str) -> None:
    assert Reading.parse(text) is None


def counts_per_second_of_the_core_that_the_program_had() -> None:
    first = Reading(time_ns=0, core_ns=0, tsc_hz=2_000_000_000, received=0, sent=100)
    last = Reading(time_ns=2_000_000_000, core_ns=1_000_000_000, tsc_hz=2_000_000_000, received=60, sent=150)
    sample = Sample.between(first, last)
    assert sample == Sample(
        seconds=2.0, core_share=0.5, received_pps=60.0, sent_pps=50.0, cycles_per_packet=40_000_000.0
    )


def counts_frames_that_arrive_by_the_clock_on_the_wall() -> None:
    first = Reading(time_ns=0, core_ns=0, tsc_hz=2_000_000_000, received=0, sent=100)
    last = Reading(time_ns=2_000_000_000, core_ns=1_000_000_000, tsc_hz=2_000_000_000, received=60, sent=150)
    sample = Sample.between(first, last, is_paced=True)
    assert sample == Sample(
        seconds=2.0, core_share=0.5, received_pps=30.0, sent_pps=25.0, cycles_per_packet=80_000_000.0
    )


def fails_with_a_program_that_sends_nothing() -> None:
    with pytest.raises(Fault, match=r"sent nothing in 1\.0 s"):
        Sample.between(Reading(0, 0, 1, 0, 7), Reading(1_000_000_000, 1, 1, 5, 7))


def takes_the_median_of_each_figure() -> None:
    samples = [Sample(1.0, 1.0, 10.0, float(sent), 3.0 / sent) for sent in (3, 1, 2)]
    assert middle(samples) == Sample(1.0, 1.0, 10.0, 2.0, 1.5)
