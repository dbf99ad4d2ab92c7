"""Allocation of cores to the two sides of a lab."""

from pathlib import Path

import pytest

from dl3.dut.beds import KINDS
from dl3.dut.wired import cores_for, tester_cores
from dl3.lab import pair
from dl3.model.campaign import DutSpec, Setup, Traffic
from dl3.model.fault import UsageFault


@pytest.mark.parametrize(
    ("given", "generator", "device"),
    [
        ({}, (0,), (1,)),
        ({"cores": 2}, (0,), (1, 2)),
        ({"dut_cores": (0,)}, (1,), (0,)),
        ({"dut_cores": (0, 1), "cores": 2}, (2,), (0, 1)),
        ({"dut_cores": (3,)}, (0,), (3,)),
        ({"generator_cores": (2,)}, (2,), (0,)),
        ({"dut_cores": (1,), "generator_cores": (1,)}, (1,), (1,)),  # explicitly given by the user
    ],
)
def gives_each_side_cores_of_its_own(
    given: dict[str, object], generator: tuple[int, ...], device: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dl3.dut.wired.usable", lambda: (0, 1, 2, 3))
    setup = Setup.model_validate({"dut": DutSpec(name="dl3d", kind="dl3d"), **given})
    assert tester_cores(setup) == generator
    assert cores_for(setup, pair.Tester(generator)) == device


@pytest.fixture
def _siblings_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dl3.dut.wired.usable", lambda: (0, 2, 4, 6))


@pytest.mark.usefixtures("_siblings_are_off")
@pytest.mark.parametrize(
    ("given", "generator", "device"),
    [({"cores": 3}, (0,), (2, 4, 6)), ({"dut_cores": (0, 6), "cores": 2}, (2,), (0, 6))],
)
def gives_only_cores_that_are_there(
    given: dict[str, object], generator: tuple[int, ...], device: tuple[int, ...]
) -> None:
    setup = Setup.model_validate({"dut": DutSpec(name="dl3d", kind="dl3d"), **given})
    assert tester_cores(setup) == generator
    assert cores_for(setup, pair.Tester(generator)) == device


@pytest.mark.usefixtures("_siblings_are_off")
def names_the_cores_that_are_there() -> None:
    setup = Setup.model_validate({"dut": DutSpec(name="box", kind="dl3d"), "dut_cores": (1,)})
    with pytest.raises(UsageFault, match=r"^box: core 1 does not exist; available cores: 0,2,4,6$"):
        cores_for(setup, pair.Tester((0,)))


def gives_the_white_papers_addresses_only_to_what_forwards_them() -> None:
    traffic = Traffic(addresses="white-paper")
    for name, kind in KINDS.items():
        assert ("addresses" in kind.ability.honours) == (name in ("dl3d", "testpmd"))
    setup = Setup(dut=DutSpec(name="box", kind="l3fwd"))
    with pytest.raises(UsageFault, match=r"^box: a device of the kind 'l3fwd' cannot be given addresses = white-paper"):
        KINDS["l3fwd"].opened(setup, traffic, Path("build"))
