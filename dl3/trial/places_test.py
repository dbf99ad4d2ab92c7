"""Each lost frame is attributed to exactly one place."""

from typing import Any

import pytest

from dl3.control.generator import Results
from dl3.model.stream import Stream
from dl3.trial.account import places
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Order
from dl3.trial.passage import Passage

SENT = 1_000_000
LINUX = {"punt_ring_full": 600}
ONE = (Stream.model_validate({"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:01", "rate": "1 Mpps"}),)


def results(received: int, refused: int = 0, **port: int) -> Results:
    """Results of one second at 1 Mpps."""
    generator = FakeGenerator(device_pps=received)
    generator.reply_send({"streams": Order(ONE, "64", SENT, 1.0).written(), "seconds": 1.0})
    generator.newest["streams"][0].update(refused=refused)
    generator.newest["ports"][1].update(port)
    return Results.model_validate(generator.newest)


def passage(received: int, sent: int, lost: dict[str, int] | None = None, **more: Any) -> Passage:
    """dl3d's accounting of the same trial."""
    whole = {"injected": 0, "copied": 0, "punted": 0, "dropped": 0, "is_whole": True}
    return Passage(**(whole | more), received=received, sent=sent, lost=lost or {})


@pytest.mark.parametrize(
    ("reported", "dut", "wanted"),
    [
        (results(999_000), None, {"unknown": 1_000}),
        (results(999_000, refused=1_000), None, {"dut rx ring full": 1_000}),
        (results(999_000, refused=1_000), passage(999_000, 999_000), {"dut rx ring full": 1_000}),
        (results(999_000, refused=1_000), passage(999_000, 999_000, no_mbuf=1), {"rx_no_mbuf": 1_000}),
        # At 1 Mpps, 1,000 frames take one millisecond.
        (results(999_000, refused=1_000), passage(999_000, 999_000, starved_s=0.0006), {"rx_no_mbuf": 1_000}),
        (results(999_000, refused=1_000), passage(999_000, 999_000, starved_s=0.0004), {"dut rx ring full": 1_000}),
        (results(999_000), passage(999_000, 999_000, {"rx_missed": 1_000}), {"rx_missed": 1_000}),
        (results(999_000), passage(999_000, 999_000, {"rx_missed": 1_000}, no_mbuf=1), {"rx_no_mbuf": 1_000}),
        (results(999_000), passage(999_000, 999_000, starved_s=0.002), {"rx_no_mbuf": 1_000}),
        (results(999_000), passage(999_000, 999_000), {"wire to the dut": 1_000}),
        (results(999_000), passage(SENT, SENT), {"wire from the dut": 1_000}),
        (results(999_000, rx_missed=900), passage(SENT, SENT), {"generator rx missed": 900, "wire from the dut": 100}),
        (results(999_000), passage(SENT, 999_000, {"no_route": 1_000}), {"no_route": 1_000}),
        (results(999_000), passage(SENT, 999_000, LINUX, punted=400), {**LINUX, "punted to Linux": 400}),
        # Linux forwards the punted packets; other traffic is punted as well.
        (results(SENT), passage(SENT, SENT, punted=50, injected=50), {}),
        (results(999_990), passage(SENT, SENT, punted=50), {"punted to Linux": 10}),
    ],
)
def names_where_frames_were_lost(reported: Results, dut: Passage | None, wanted: dict[str, int]) -> None:
    assert places(reported, dut) == wanted
