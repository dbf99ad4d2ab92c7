"""How long workers found no buffer."""

import pytest

from dl3.control.replies import Drops
from dl3.trial.fake import FakeForwarder
from dl3.trial.passage import Passage


def drops(**wire: int | None) -> Drops:
    """Counters of a dl3d that has received nothing yet."""
    reported = FakeForwarder().reply_drops()
    return Drops.model_validate({**reported, "wire": {**reported["wire"], **wire}})


def takes_each_look_for_the_rounds_since_the_one_before() -> None:
    made = Passage.between(drops(starved_loops=100), drops(starved_loops=1100), round_s=1e-6)
    assert made.starved_s == pytest.approx(0.064)
    assert (made.no_mbuf, made.is_whole) == (0, True)
    assert Passage.between(drops(), drops(starved_loops=9)).starved_s == 0
    assert Passage.between(drops(rx_no_mbuf=2), drops(rx_no_mbuf=5)).no_mbuf == 3


def is_not_whole_where_looks_went_back() -> None:
    assert not Passage.between(drops(starved_loops=5), drops(starved_loops=4, rx_no_mbuf=9)).is_whole


def takes_what_devices_do_not_count_for_none() -> None:
    assert Passage.between(drops(rx_missed=None, rx_no_mbuf=None), drops(rx_missed=None, rx_no_mbuf=2)).no_mbuf == 2
    made = Passage.between(drops(rx_missed=None), drops(rx_missed=3))
    assert (made.lost["rx_missed"], made.is_whole) == (3, True)
