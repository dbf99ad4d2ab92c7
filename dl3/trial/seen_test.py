"""Pauses and machine events that are stored with a trial."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dl3.model.evidence import Event, Evidence
from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.model.trial import Trial
from dl3.trial.fake import START_NS, FakeForwarder, FakeGenerator
from dl3.trial.order import Order, Site
from dl3.trial.run import Runner
from dl3.trial.seen import MOST_GAPS, Watch

ONE = (Stream.model_validate({"from": "left", "to": "right", "dst_mac": "02:00:00:00:00:01", "rate": "1 Mpps"}),)
END_NS = START_NS + 1_000_000_000
SWITCH = Event(what="switch", at_ns=START_NS + 9, us=3.0, core=3, who="kworker/3:1")


class FakeWatch:
    """Observes one switch and records its arguments."""

    def __init__(self) -> None:
        self.reported: list[object] = []

    def start(self, cores: Sequence[int], processes: Mapping[str, int]) -> None:
        self.reported.append((tuple(cores), dict(processes)))

    def stop(self) -> Evidence:
        self.reported.append("stop")
        return Evidence(events=(SWITCH,), totals={"switches core 3": 1}, missing=("no tracefs",))


def pauses(*gaps: tuple[int, float], forgotten: int = 0, now_ns: int = START_NS) -> dict[str, Any]:
    """Pauses of worker 0 on core 3, given by end and length."""
    rows = [{"worker": 0, "core": 3, "at_ns": at_ns, "us": us} for at_ns, us in gaps]
    return {"gaps": rows, "forgotten": forgotten, "now_ns": now_ns}


def trial(
    device_pps: float = 9e5,
    own: dict[str, Any] | None = None,
    dut: dict[str, Any] | None = None,
    watch: Watch | None = None,
    is_explained: bool = False,
) -> Trial:
    """A one-second trial at 1 Mpps with a dl3d."""
    generator = FakeGenerator(device_pps=device_pps, gaps=own or pauses())
    forwarder = FakeForwarder(generator=generator, gaps=dut or pauses())
    runner = Runner(Site(generator, forwarder), sleep=lambda _: None, watch=watch)
    return runner.run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0, is_explained=is_explained))


def keeps_when_frames_were_lost() -> None:
    timeline = trial().timeline
    assert timeline is not None
    assert (timeline.start_ns, timeline.bucket_ns) == (START_NS, 500_000_000)
    assert (timeline.sent, timeline.received) == ((500_000, 500_000), (500_000, 400_000))
    (loss,) = timeline.losses
    assert (loss.at_ns, loss.us, loss.frames) == (END_NS, 500_000.0, 100_000)


def keeps_the_longest_pause_of_the_device_of_a_trial_without_loss_unless_more_is_asked_for() -> None:
    late = (END_NS + 5_000_000, 4_000.0)  # all its frames had already been sent
    pair = pauses((START_NS + 5, 30.0), (START_NS + 9, 90.0), (START_NS + 20, 50.0), late)
    made = trial(2e6, own=pair, dut=pair)
    assert made.timeline is None
    assert made.evidence
    assert [(gap.program, gap.us) for gap in made.evidence.gaps] == [("dl3d", 90.0)]
    made = trial(2e6, own=pauses((START_NS + 5, 30.0)), is_explained=True)
    assert made.timeline
    assert made.evidence
    assert len(made.evidence.gaps) == 1


def keeps_the_pauses_of_both_programs_within_the_trial() -> None:
    own = pauses((START_NS - 1, 500.0), (START_NS + 10_000, 25.0), (END_NS + 2_000_000_000, 100.0))
    dut = pauses((START_NS + 5_000, 700.0), (END_NS + 900_000_000, 900_000.0))
    evidence = trial(own=own, dut=dut).evidence
    assert evidence is not None
    assert [(gap.program, gap.at_ns - START_NS, gap.us) for gap in evidence.gaps] == [
        ("dl3d", 5_000, 700.0),
        ("dl3gen", 10_000, 25.0),
        ("dl3d", 1_900_000_000, 900_000.0),
    ]
    assert evidence.missing == ()


def keeps_the_longest_pauses_in_the_order_of_time() -> None:
    many = pauses(*((START_NS + 1000 * i, 20.0 + i % 300) for i in range(1, 301)))
    evidence = trial(dut=many).evidence
    assert evidence is not None
    assert len(evidence.gaps) == MOST_GAPS
    assert min(gap.us for gap in evidence.gaps) == 20.0 + 300 - MOST_GAPS
    assert [gap.at_ns for gap in evidence.gaps] == sorted(gap.at_ns for gap in evidence.gaps)


def reports_when_pauses_are_forgotten_or_of_another_clock() -> None:
    evidence = trial(dut=pauses((START_NS + 5_000, 30.0), forgotten=2)).evidence
    assert evidence is not None
    (only,) = evidence.missing
    assert only.startswith("dl3d stalled more often than it records")
    evidence = trial(dut=pauses((START_NS - 5_000, 30.0), forgotten=2)).evidence
    assert evidence is not None
    assert (evidence.gaps, evidence.missing) == ((), ())
    evidence = trial(dut=pauses((START_NS + 5_000, 30.0), now_ns=7)).evidence
    assert evidence is not None
    assert evidence.gaps == ()
    assert evidence.missing[0].startswith("dl3d runs on another machine")


def watches_the_cores_of_all_workers_around_the_trial() -> None:
    watch = FakeWatch()
    evidence = trial(watch=watch, own=pauses((START_NS + 10_000, 25.0))).evidence
    assert evidence is not None
    assert watch.reported == [((1, 3), {"dl3gen": 11, "dl3d": 12}), "stop"]
    assert evidence.events == (SWITCH,)
    assert evidence.totals == {"switches core 3": 1}
    assert evidence.missing == ("no tracefs",)
    assert len(evidence.gaps) == 1


def ends_watching_when_a_trial_fails() -> None:
    watch = FakeWatch()
    generator = FakeGenerator(spoil=lambda results: results.update(state="sending"))
    with pytest.raises(Fault):
        Runner(Site(generator), lambda _: None, watch).run(Order(ONE, "64", 1e6, 1.0, warm_up_s=0))
    assert watch.reported[-1] == "stop"
