"""Devices under test, started as for a benchmark."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from dl3.dut.bed import Bed
from dl3.dut.beds import open_bed
from dl3.dut.check import lost_streams
from dl3.model.campaign import DutSpec, Setup, Traffic
from harness.answers import CORES
from harness.wired import BUILD

TESTER, OTHER = CORES[0], CORES[-1]
PLAIN = Traffic()
OVS = pytest.param("ovs", marks=pytest.mark.long)  # takes 20 s to start


def spec_of(text: str) -> DutSpec:
    """A device by its kind and options: KIND:NAME=VALUE,..."""
    kind, _, rest = text.partition(":")
    words = (word.partition("=") for word in rest.split(",") if word)
    return DutSpec(name=text, kind=kind, options={name: value for name, _, value in words})


def setup_of(text: str, **more: object) -> Setup:
    """The device and dl3gen have a core each."""
    given = {"dut_cores": (OTHER,), "generator_cores": (TESTER,), **more}
    return Setup.model_validate({"dut": spec_of(text), **given})


@contextlib.contextmanager
def opened(text: str, traffic: Traffic = PLAIN, **more: Any) -> Iterator[Bed]:
    """A device that forwards, and dl3gen, for the duration of a block."""
    with open_bed(setup_of(text, **more), traffic, BUILD) as bed:
        yield bed


def passes(bed: Bed) -> bool:
    """Within some seconds: links come up slowly, and a switch may be busy when the first frames of a flow arrive."""
    return not lost_streams(bed.generator, [stream.written() for stream in bed.streams])
