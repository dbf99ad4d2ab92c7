"""Devices under test that stand still or are reset, and forward again afterwards."""

from collections.abc import Callable, Iterator

import pytest
from harness.duts import OVS, opened, passes

from dl3.dut.bed import Bed
from dl3.model.fault import Fault

pytestmark = pytest.mark.alone  # huge pages, and one core per program


@pytest.fixture(scope="module")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """The device that the test names."""
    with opened(request.param) as made:
        yield made


def _stand_still(bed: Bed) -> None:
    bed.freeze()
    bed.thaw()


def _reset_process(bed: Bed) -> None:
    bed.reset_process()


def _reset_port(bed: Bed) -> None:
    bed.reset_port()


def _refuse(reset: Callable[[Bed], None]) -> Callable[[Bed], None]:
    """It says what cannot be reset."""

    def check(bed: Bed) -> None:
        with pytest.raises(Fault, match=r"veth|kernel"):
            reset(bed)

    return check


# What is of one device stands together: it is started once.
ROWS: dict[str, dict[str, Callable[[Bed], None]]] = {
    "dl3d": {"stood still": _stand_still, "no process": _refuse(_reset_process), "no port": _refuse(_reset_port)},
    "dl3d:wire=veth": {"process": _reset_process, "port": _reset_port},
    "testpmd:wire=veth": {"process": _reset_process},
    "linux": {"stood still": _stand_still, "no process": _refuse(_reset_process), "port": _reset_port},
    "ovs": {"stood still": _stand_still, "port": _reset_port},
}


PARAMS = [
    pytest.param(text, act, marks=OVS.marks if text == "ovs" else (), id=f"{text}-{name}")
    for text, acts in ROWS.items()
    for name, act in acts.items()
]


@pytest.mark.parametrize(("bed", "act"), PARAMS, indirect=["bed"])
def forwards_again_after(bed: Bed, act: Callable[[Bed], None]) -> None:
    act(bed)
    assert passes(bed)
