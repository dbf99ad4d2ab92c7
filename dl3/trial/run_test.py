"""Trials with a simulated generator: what is sent, how long the runner sleeps, how it evaluates the results."""

from typing import Any

import pytest

from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.trial.fake import Change, FakeForwarder, FakeGenerator
from dl3.trial.order import Order, Site, Surplus
from dl3.trial.run import QUIET_S, Runner

ONE = (Stream.model_validate({"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:01", "rate": "1 Mpps"}),)
BOTH = (*ONE, Stream.model_validate({"name": "back", "from": "right", "to": "left", "rate": "3 Mpps"}))


def trial(generator: FakeGenerator, pps: float = 1e6, dut: Change | None = None) -> Trial:
    """A one-second trial, with a dl3d if its results are to be modified."""
    forwarder = FakeForwarder(generator=generator, spoil=dut) if dut else None
    runner = Runner(Site(generator, forwarder, campaign="c"), sleep=lambda _: None)
    return runner.run(Order(ONE, "64", pps, 1.0, "throughput", warm_up_s=0))


def counting(**values: Any) -> Change:
    """Modify counters of the stream."""
    return lambda results: results["streams"][0].update(values)


def receiving(**values: Any) -> Change:
    """Modify counters of the receiving port."""
    return lambda results: results["ports"][1].update(values)


def sends_what_was_ordered_after_a_warm_up_and_sleeps_meanwhile() -> None:
    generator, slept = FakeGenerator(), list[float]()
    Runner(Site(generator), slept.append).run(Order(BOTH, "imix", 4e6, 2.0, warm_up_s=0.25))
    sent = [params for method, params in generator.asked if method == "send"]
    assert [params["seconds"] for params in sent] == [0.25, 2.0]
    assert sent[1]["streams"] == [
        {"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:01", "size": "imix", "rate": 1e6},
        {"name": "back", "from": "right", "to": "left", "size": "imix", "rate": 3e6},
    ]
    assert [seconds for seconds in slept if seconds > 0.1] == [0.26, 2.01]
    methods = [method for method, _ in generator.asked]
    assert methods[0] == "send"
    assert set(methods) == {"send", "results", "gaps"}


def counts_the_bytes_of_frames_without_a_number_with_their_frames() -> None:
    assert trial(FakeGenerator(spoil=counting(unstamped=1_000_000, sent_bytes=200_000_000))).mean_bytes == 100


def puts_the_delays_of_an_overload_and_of_the_rest_together() -> None:
    order = Order(ONE, "64", 1e6, 2.0, warm_up_s=0, surplus=Surplus(1e6, 1.0))
    found = Runner(Site(FakeGenerator()), lambda _: None).run(order).latency
    assert (found.n, found.min, found.p50, found.p90, found.max) == (3_000_000, 4000, 4000, 5000, 5000)


def acts_after_a_quarter_of_the_time() -> None:
    done: list[float] = []
    slept: list[float] = []
    Runner(Site(FakeGenerator()), slept.append).run(
        Order(BOTH, "64", 4e6, 2.0, warm_up_s=0), lambda: done.append(sum(slept))
    )
    assert done == [pytest.approx(0.5025)]
    assert sum(slept[:2]) == pytest.approx(2.01, abs=0.01)


def a_burst_ends_with_its_last_frame_and_not_with_the_time() -> None:
    generator = FakeGenerator()
    made = Runner(Site(generator), lambda _: None).run(Order(BOTH, "64", 0.0, 2.0, warm_up_s=0, frames=1000))
    (sent,) = [params for method, params in generator.asked if method == "send"]
    assert "seconds" not in sent
    assert (made.account.sent, made.invalid) == (1000, ())


def a_burst_with_frames_left_out_is_invalid() -> None:
    generator = FakeGenerator(spoil=counting(late=1))
    made = Runner(Site(generator), lambda _: None).run(Order(BOTH, "64", 0.0, 2.0, warm_up_s=0, frames=100_000))
    assert made.invalid == ("burst: 1 of 100,000 frames were skipped because the generator was late",)
    assert made.is_behind


def computes_when_the_last_lost_frame_was_due() -> None:
    made = trial(FakeGenerator(spoil=counting(last_lost=250_000, longest_outage_us=1500.0)))
    assert (made.last_lost_s, made.longest_outage_s) == (0.25, 0.0015)
    assert trial(FakeGenerator()).last_lost_s is None


def makes_a_whole_account_of_a_good_trial() -> None:
    made = trial(FakeGenerator())
    assert made.invalid == ()
    assert (made.frame, made.mean_bytes, made.asked_pps, made.offered_pps, made.received_pps) == ("64", 64, *[1e6] * 3)
    assert (made.account.sent, made.account.received, made.account.lost) == (1_000_000, 1_000_000, 0)
    assert made.account.lost_by_place == {}
    assert (made.latency.p50, made.latency_from_sending.max, made.jitter_max) == (4000, 3500, 9)
    assert made.facts["run"]


def calls_loss_loss() -> None:
    made = trial(FakeGenerator(device_pps=9e5))
    assert made.invalid == ()
    assert made.loss_ratio == pytest.approx(0.1)
    assert made.received_pps == pytest.approx(9e5)
    assert made.account.lost_by_place == {"unknown": 100_000}


def takes_nothing_received_at_all_for_loss() -> None:
    made = trial(FakeGenerator(device_pps=0))
    assert made.invalid == ()
    assert (made.loss_ratio, made.latency.n) == (1, 0)


def names_the_place_of_each_loss() -> None:
    def spoil(drops: dict[str, Any]) -> None:
        drops["verdicts"] = [
            {"name": "forward", "packets": 900_000, "step": "", "text": ""},
            {"name": "no_route", "packets": 60_000, "step": "", "text": ""},
        ]
        drops.update(received=970_000, sent=910_000, dropped=60_000)

    generator = FakeGenerator(device_pps=9e5, spoil=counting(refused=30_000, corrupted=4_000))
    made = trial(generator, dut=spoil)
    assert made.invalid == ()
    wanted = {"dut rx ring full": 30_000, "corrupted": 4_000, "no_route": 60_000, "wire from the dut": 6_000}
    assert made.account.lost_by_place == wanted


@pytest.mark.parametrize(
    ("spoil", "reason", "is_behind"),
    [
        (counting(late=1_100), "late: the generator skipped 1,100 frames (0.11%) that were due", True),
        (counting(offered_pps=998_000.0), "pacing: stream 'stream0' was offered 0.20% below its rate", True),
        (counting(offered_pps=1_002_000.0), "pacing: stream 'stream0' was offered 0.20% above its rate", False),
        (
            receiving(rx_missed=5),
            "sink late: the generator's ports dropped 5 frames that were not polled in time",
            True,
        ),
        (
            lambda results: results.update(tsc_offset_ns=-101.0),
            "clock: the TSCs of two workers are 101 ns apart",
            False,
        ),
        (
            counting(lost_by_gaps=3),
            "accounting: stream 'stream0' lost 0 frames, but 3 by the gaps in its sequence numbers",
            False,
        ),
        (counting(received=1_000_001, lost=-1, lost_by_gaps=-1), "accounting: stream 'stream0' sent 1,000,000,", False),
        (receiving(link_up=False), "link: port 'right' of the generator lost its link", False),
        (
            counting(sent=0, received=0, lost=0, lost_by_gaps=0, offered_pps=0.0),
            "late: the generator sent nothing",
            True,
        ),
    ],
)
def reports_why_a_trial_is_invalid(spoil: Change, reason: str, is_behind: bool) -> None:
    made = trial(FakeGenerator(spoil=spoil))
    assert len(made.invalid) == 1
    assert made.invalid[0].startswith(reason)
    assert made.is_behind is is_behind


@pytest.mark.parametrize(
    "spoil",
    [
        counting(late=1_000),
        counting(offered_pps=999_001.0),
        receiving(late_polls=7),
        lambda results: results.update(tsc_offset_ns=100.0),
    ],
)
def tolerates_what_is_within_the_limits(spoil: Change) -> None:
    assert trial(FakeGenerator(spoil=spoil)).invalid == ()


def takes_loss_beside_late_polls_for_the_sink_s_own() -> None:
    made = trial(FakeGenerator(device_pps=9e5, spoil=receiving(late_polls=2, longest_gap_us=40_000.0)))
    assert made.invalid == (
        "stalls: the generator stalled 2 times for up to 40,000 us; they can have cost 78,261 frames (8.70%), more than 1%",
    )
    assert made.is_behind


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"received": 1_000_003},
            "accounting: dl3d received 1,000,003, injected 0 and copied 0 packets, sent 1,000,000,",
        ),
        ({"copied": 2}, "accounting: dl3d received 1,000,000, injected 0 and copied 2 packets, sent 1,000,000,"),
        ({"dropped": 2}, "accounting: dl3d received"),
        ({"punted": -7}, "accounting: dl3d's counters decreased"),
    ],
)
def holds_dl3d_to_its_account(changed: dict[str, int], reason: str) -> None:
    made = trial(FakeGenerator(), dut=lambda drops: drops.update(changed))
    assert [text.startswith(reason) for text in made.invalid] == [True]
    assert not made.is_behind


def fails_when_another_program_starts_a_run() -> None:
    generator = FakeGenerator()
    generator.spoil = lambda results: results.update(run=results["run"] + 1)
    with pytest.raises(Fault, match="run 1 of dl3gen was replaced by run 2: another program"):
        trial(generator)


def waits_for_stragglers_and_not_for_ever() -> None:
    generator, slept = FakeGenerator(device_pps=9e5), list[float]()
    Runner(Site(generator), slept.append).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert slept == [1.01, QUIET_S]

    class Endless(FakeGenerator):
        def reply_results(self, params: dict[str, Any]) -> dict[str, Any]:
            self.newest["streams"][0]["duplicated"] += 1
            return super().reply_results(params)

    slept.clear()
    Runner(Site(Endless(device_pps=9e5)), slept.append).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert 2.9 < sum(slept[1:]) < 3.2


def waits_until_dl3d_has_no_packet_under_way() -> None:
    generator, looks = FakeGenerator(), list[int]()

    def flow(drops: dict[str, Any]) -> None:
        looks.append(1)
        drops["in_flight"] = 5 if len(looks) < 4 else 0

    runner = Runner(Site(generator, FakeForwarder(generator=generator, spoil=flow)), sleep=lambda _: None)
    assert runner.run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0)).invalid == ()
    assert len(looks) == 5


def gives_up_on_a_generator_that_never_ends() -> None:
    generator = FakeGenerator(spoil=lambda results: results.update(state="sending"))
    with pytest.raises(Fault, match="was still sending 10 s after the end of its run and was halted"):
        trial(generator)
    assert generator.asked[-1] == ("halt", {})


def halts_the_generator_when_the_person_has_had_enough() -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    generator = FakeGenerator()
    with pytest.raises(KeyboardInterrupt):
        Runner(Site(generator), interrupt).run(Order(ONE, "64", 1e6, 60.0))
    assert [method for method, _ in generator.asked] == ["send", "halt"]
