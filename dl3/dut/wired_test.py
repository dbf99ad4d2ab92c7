"""Which cores the two sides of a lab are given."""

import os

import pytest

from dl3.dut.wired import cores_for, tester_cores
from dl3.lab import pair
from dl3.model.campaign import DutSpec, Setup


@pytest.mark.parametrize(
    ("given", "generator", "device"),
    [
        ({}, (0,), (1,)),
        ({"cores": 2}, (0,), (1, 2)),
        ({"dut_cores": (0,)}, (1,), (0,)),
        ({"dut_cores": (0, 1), "cores": 2}, (2,), (0, 1)),
        ({"dut_cores": (3,)}, (0,), (3,)),
        ({"generator_cores": (2,)}, (2,), (0,)),
        ({"dut_cores": (1,), "generator_cores": (1,)}, (1,), (1,)),  # as somebody has named them
    ],
)
def gives_each_side_cores_of_its_own(
    given: dict[str, object], generator: tuple[int, ...], device: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    setup = Setup.model_validate({"dut": DutSpec(name="dl3d", kind="dl3d"), **given})
    assert tester_cores(setup) == generator
    assert cores_for(setup, pair.Tester(generator)) == device
