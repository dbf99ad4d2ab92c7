"""What lanes did between two answers of dl3d."""

from typing import Any

import pytest

from dl3.control.linux import Mirror
from dl3.control.replies import Lanes
from dl3.trial.fake import FakeForwarder, FakeGenerator
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner
from dl3.trial.run_test import ONE
from dl3.trial.work import round_s_of, work_between


def lanes(packets: int, timed: int, lookup: float, loops: int = 0, lane: int = 0) -> Lanes:
    counters = {"loops": loops, "empty_loops": loops // 2, "bursts": packets // 10, "timed_packets": timed}
    one: dict[str, Any] = {"lane": lane, "core": 3, "numa": 0, "counters": counters, "poll_gap": None}
    more: dict[str, Any] = {"empty_share": 0.0, "cycles_per_packet": {"rx": 10.0, "lookup": lookup} if timed else None}
    verdicts = {"forward": packets - 7, "no_route": 7}
    more["queues"] = ({"port": "left", "queue": 1, "rx_packets": packets},)
    return Lanes.model_validate({"tsc_hz": 2e9, "lanes": [{**one, **more, "verdicts": verdicts}]})


def counts_what_came_in_between() -> None:
    (work,) = work_between(lanes(1000, 100, 50.0, loops=10), lanes(9000, 300, 90.0, loops=110))
    assert (work.lane, work.core, work.tsc_hz) == (0, 3, 2e9)
    assert (work.packets, work.bursts, work.loops, work.empty_loops) == (8000, 800, 100, 50)
    assert work.queues == {"left/1": 8000}
    # 300 x 90 - 100 x 50 cycles of 200 frames.
    assert work.cycles_per_packet == {"rx": 10.0, "lookup": 110.0}


def tells_the_mean_round_of_all_lanes() -> None:
    (work,) = work_between(lanes(1000, 100, 50.0, loops=10), lanes(9000, 300, 90.0, loops=110))
    assert round_s_of((work, work), 0.5) == pytest.approx(0.005)
    assert round_s_of((), 0.5) == 0


def knows_no_cycles_when_nothing_was_timed() -> None:
    (work,) = work_between(lanes(1000, 0, 0), lanes(2000, 0, 0))
    assert (work.packets, work.cycles_per_packet) == (1000, {})


def takes_no_difference_to_a_program_that_was_started_again() -> None:
    assert work_between(lanes(9000, 300, 50.0, loops=900), lanes(100, 10, 50.0, loops=10)) == ()
    assert work_between(lanes(0, 0, 0, lane=1), Lanes.model_validate({"lanes": []})) == ()


class Mirroring(FakeForwarder):
    """Hears 40 messages of Linux each time it is asked."""

    heard: int = 0

    def answer_mirror(self) -> dict[str, Any]:
        self.heard += 40
        more = set(Mirror.model_fields) - {"state", "messages", "links", "vrfs"}
        counts = dict.fromkeys(more, 0)
        return {**counts, "state": "following", "messages": self.heard, "links": (), "vrfs": ()}


def stands_beside_each_trial_of_dl3d() -> None:
    generator = FakeGenerator()
    site = Site(generator, Mirroring(generator=generator))
    evidence = Runner(site, lambda _: None).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0)).evidence
    assert evidence is not None
    assert [work.core for work in evidence.work] == [3]
    assert evidence.totals == {"netlink messages": 40.0}


def other_devices_tell_nothing() -> None:
    made = Runner(Site(FakeGenerator()), lambda _: None).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert made.evidence is None
