"""dl3gen, memif, dl3d, memif, dl3gen: both sides account for the same packets."""

from collections.abc import Iterator

import pytest
from harness.answers import CORES
from harness.wired import BUILD, DL3D

from dl3.control.generator import Results
from dl3.control.replies import Drops
from dl3.dut.dl3d import Dl3d
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.model.stream import Stream
from dl3.trial.order import Order, Site
from dl3.trial.passage import Passage
from dl3.trial.run import Runner

pytestmark = pytest.mark.alone  # huge pages, and a core for each program

PPS = 100_000.0
SECONDS = 0.3
BOTH = tuple(Stream.model_validate(each) for each in streams(Flows(number=1000, is_both_ways=True)))
ASTRAY = tuple(Stream.model_validate(each | {"dst_ip": "192.0.2.1"}) for each in streams(Flows(is_both_ways=True)))


@pytest.fixture(scope="module")
def lab() -> Iterator[MemifLab]:
    assert len(CORES) > 1, "dl3gen and dl3d want a core each"
    with memif_lab(MemifSettings(Dl3d(DL3D), build=BUILD, generator_core=CORES[0], dut_cores=(CORES[-1],))) as made:
        yield made


@pytest.mark.parametrize("frame", ["64", "1518", "imix"])
@pytest.mark.parametrize("sent", [BOTH, ASTRAY], ids=["routed", "astray"])
def both_sides_report_the_same_packets(lab: MemifLab, sent: tuple[Stream, ...], frame: str) -> None:
    assert lab.dut is not None
    before = lab.dut.ask(Drops, "drops")
    trial = Runner(Site(lab.generator, lab.dut)).run(Order(sent, frame, PPS, SECONDS, warm_up_s=0.0))
    passage = Passage.between(before, lab.dut.ask(Drops, "drops"))
    reported = lab.generator.ask(Results, "results").streams
    assert sum(each.sent - each.refused for each in reported) == passage.received > 0
    assert sum(each.received for each in reported) == passage.sent
    assert passage.missing == 0
    assert passage.lost.get("no_route", 0) == (passage.received if sent is ASTRAY else 0)
    assert not any(reason.startswith("accounting") for reason in trial.invalid)
    for each in reported:
        assert each.lost == each.lost_by_gaps == each.sent - each.received
        assert (each.duplicated, each.corrupted, each.reordered, each.too_old) == (0, 0, 0, 0)
