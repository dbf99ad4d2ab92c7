"""Worker statistics between two replies of dl3d."""

from dataclasses import dataclass
from typing import Any

import pytest

from dl3.control.linux import Mirror
from dl3.control.replies import Workers
from dl3.trial.fake import START_NS, FakeForwarder, FakeGenerator
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner
from dl3.trial.run_test import ONE
from dl3.trial.work import MOST_BURSTS, round_s_of, work_between


def workers(packets: int, timed: int, lookup: float, loops: int = 0, worker: int = 0) -> Workers:
    counters = {"loops": loops, "empty_loops": loops // 2, "bursts": packets // 10, "timed_packets": timed}
    counters["flow_packets"] = packets - 9
    one: dict[str, Any] = {"worker": worker, "core": 3, "numa": 0, "counters": counters, "poll_gap": None}
    more: dict[str, Any] = {"empty_share": 0.0, "cycles_per_packet": {"rx": 10.0, "lookup": lookup} if timed else None}
    verdicts = {"forward": packets - 7, "no_route": 7}
    more["queues"] = ({"port": "left", "queue": 1, "rx_packets": packets},)
    return Workers.model_validate({"tsc_hz": 2e9, "workers": [{**one, **more, "verdicts": verdicts}]})


def counts_what_came_in_between() -> None:
    (work,) = work_between(workers(1000, 100, 50.0, loops=10), workers(9000, 300, 90.0, loops=110))
    assert (work.worker, work.core, work.tsc_hz) == (0, 3, 2e9)
    assert (work.packets, work.bursts, work.loops, work.empty_loops) == (8000, 800, 100, 50)
    assert work.flow_packets == 8000
    assert work.queues == {"left/1": 8000}
    # 300 x 90 - 100 x 50 cycles over 200 frames.
    assert work.cycles_per_packet == {"rx": 10.0, "lookup": 110.0}


def tells_no_packets_of_flows_of_a_program_that_does_not_count_them() -> None:
    before, after = (workers(n, 0, 0) for n in (1000, 2000))
    for reply in (before, after):
        del reply.workers[0].counters["flow_packets"]
    (work,) = work_between(before, after)
    assert (work.packets, work.flow_packets) == (1000, None)


def reports_the_mean_round_of_all_workers() -> None:
    (work,) = work_between(workers(1000, 100, 50.0, loops=10), workers(9000, 300, 90.0, loops=110))
    assert round_s_of((work, work), 0.5) == pytest.approx(0.005)
    assert round_s_of((), 0.5) == 0


def has_no_cycles_when_nothing_was_timed() -> None:
    (work,) = work_between(workers(1000, 0, 0), workers(2000, 0, 0))
    assert (work.packets, work.cycles_per_packet) == (1000, {})


def takes_no_difference_to_a_program_that_was_started_again() -> None:
    assert work_between(workers(9000, 300, 50.0, loops=900), workers(100, 10, 50.0, loops=10)) == ()
    assert work_between(workers(0, 0, 0, worker=1), Workers.model_validate({"workers": []})) == ()


@dataclass
class Mirroring(FakeForwarder):
    """Receives 40 netlink messages between two requests."""

    heard: int = 0
    bursts: tuple[dict[str, Any], ...] = ()

    def reply_mirror(self) -> dict[str, Any]:
        self.heard += 40
        more = set(Mirror.model_fields) - {"state", "messages", "interfaces", "vrfs", "bursts"}
        counts = dict.fromkeys(more, 0)
        return {
            **counts,
            "state": "following",
            "messages": self.heard,
            "interfaces": (),
            "vrfs": (),
            "bursts": self.bursts,
        }


def stands_beside_each_trial_of_dl3d() -> None:
    generator = FakeGenerator()
    site = Site(generator, Mirroring(generator=generator))
    evidence = Runner(site, lambda _: None).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0)).evidence
    assert evidence is not None
    assert [work.core for work in evidence.work] == [3]
    assert evidence.totals == {"netlink messages": 40.0}


@pytest.mark.parametrize("ahead_ns", [None, 7_000_000_000])
def lays_bursts_of_messages_on_the_axis_of_the_trial(ahead_ns: int | None) -> None:
    generator = FakeGenerator(device_pps=9e5)
    ends_ms = (-5, 20, 999, 5000)  # before, within, within, after
    bursts = tuple(
        {"at_ns": START_NS + (ahead_ns or 0) + ms * 1_000_000, "us": 500.0, "messages": 1200 + ms} for ms in ends_ms
    )
    dut = Mirroring(generator=generator, bursts=bursts)
    made = Runner(Site(generator, dut, far_ahead_ns=ahead_ns), lambda _: None).run(
        Order(ONE, "64", 1e6, 1.0, warm_up_s=0)
    )
    assert made.evidence is not None
    events = [(event.at_ns, event.us, event.who, event.is_elsewhere) for event in made.evidence.events]
    is_far = ahead_ns is not None
    assert events == [
        (START_NS + 20_000_000, 500.0, "1,220", is_far),
        (START_NS + 999_000_000, 500.0, "2,199", is_far),
    ]


@pytest.mark.parametrize(("n_bursts", "is_reported"), [(MOST_BURSTS, True), (MOST_BURSTS - 1, False)])
def reports_that_bursts_of_the_beginning_are_forgotten(n_bursts: int, is_reported: bool) -> None:
    bursts = tuple({"at_ns": START_NS + 1_000_000 * (i + 500), "us": 1.0, "messages": 1} for i in range(n_bursts))
    dut = Mirroring(generator=FakeGenerator(device_pps=9e5), bursts=bursts)
    made = Runner(Site(dut.generator, dut), lambda _: None).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert made.evidence is not None
    assert any("latest bursts" in sentence for sentence in made.evidence.missing) == is_reported


class Uncounted(FakeForwarder):
    """The device of one of its ports does not count what it misses."""

    def reply_ports(self) -> dict[str, Any]:
        numbers = dict.fromkeys(("port", "mtu", "rx_queues", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes"), 1)
        losses = {"rx_missed": None, "rx_no_mbuf": 0, "rx_errors": 0, "tx_errors": 0}
        one = {**numbers, **losses, "name": "left", "device": "", "mac": "", "link_up": True}
        return {"ports": (one, {**one, "name": "right", "rx_missed": 0})}


def names_devices_that_do_not_count_their_losses() -> None:
    def spoil(results: dict[str, Any]) -> None:
        results["ports"][1]["rx_missed"] = None

    generator = FakeGenerator(device_pps=9e5, spoil=spoil)
    made = Runner(Site(generator, Uncounted(generator=generator)), lambda _: None).run(
        Order(ONE, "64", 1e6, 1.0, warm_up_s=0)
    )
    assert made.evidence is not None
    assert made.evidence.missing == (
        "frames missed by the devices of dl3gen's ports right: these devices do not count them",
        "frames missed by the devices of dl3d's ports left: these devices do not count them",
    )


def other_devices_report_nothing() -> None:
    made = Runner(Site(FakeGenerator()), lambda _: None).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert made.evidence is None
