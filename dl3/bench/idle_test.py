"""Polling and sleeping workers, simulated: alternation, CPU shares, latency, throughput, steps."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dl3.bench.fake import course_of
from dl3.bench.idle import MODES, STEP_SHARE, Mode, Plan, Reading, Side, measure
from dl3.record.reader import read
from dl3.trial.fake import FakeGenerator
from dl3.trial.run import Runner

PLAN = Plan(rounds=2, seconds=5.0, search_seconds=1.0, steps=3, step_seconds=0.2)


@dataclass
class Programs:
    """Record which side is running."""

    name: str
    events: list[str] = field(default_factory=list)

    def freeze(self) -> None:
        self.events.append(f"{self.name} stands")

    def thaw(self) -> None:
        self.events.append(f"{self.name} goes on")


@dataclass
class Clock:
    """Time advances during sleep; workers use a share of it."""

    share: float
    at_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds
        self.slept_s.append(seconds)

    def read(self) -> Reading:
        return Reading(self.at_s, self.at_s * self.share, self.at_s * (1 - self.share), self.at_s * self.share / 2)


def _side(idle: Mode, folder: Path, generator: FakeGenerator, events: list[str]) -> Side:
    clock = Clock({"poll": 1.0, "sleep": 0.02}[idle])
    run = course_of(generator, folder)
    site = replace(run.site, dut_name=f"dl3d (idle: {idle})")
    return Side(idle, Programs(idle, events), replace(run, runner=Runner(site, clock.sleep)), clock.read)


def _sides(folder: Path, **sleeper: Any) -> tuple[list[Side], list[str]]:
    events = list[str]()
    generators = {"poll": FakeGenerator(), "sleep": FakeGenerator(**sleeper)}
    return [_side(idle, folder, generators[idle], events) for idle in MODES], events


def measures_both_modes_in_turns(tmp_path: Path) -> None:
    sides, events = _sides(tmp_path)
    measure(sides, PLAN)
    one_turn = [f"{idle} {word}" for idle in MODES for word in ("goes on", "stands")]
    assert events == one_turn * (PLAN.rounds + PLAN.steps)


def finds_shares_latency_and_throughput_of_each_round(tmp_path: Path) -> None:
    sides, _ = _sides(tmp_path, device_pps=6e6)
    result = measure(sides, PLAN)
    poll, sleep = result.modes
    assert (poll.idle, sleep.idle) == MODES
    assert poll.dl3d_shares == pytest.approx((1.0, 1.0))
    assert sleep.dl3d_shares == pytest.approx((0.02, 0.02))
    assert sleep.asleep_shares == pytest.approx((0.98, 0.98))
    assert sleep.dl3gen_shares == pytest.approx((0.01, 0.01))
    assert sleep.p50_ns == sleep.p99_9_ns == (4000.0, 4000.0)
    assert poll.pps == pytest.approx((7.3e6, 7.3e6), rel=0.02)
    assert sleep.pps == pytest.approx((6e6, 6e6), rel=0.02)
    assert result.step_pps == pytest.approx(STEP_SHARE * sleep.pps[0])


def counts_the_frames_that_steps_lose(tmp_path: Path) -> None:
    def lose(results: dict[str, Any]) -> None:
        stream = results["streams"][0]
        if results["seconds"] == PLAN.step_seconds:
            stream["received"] -= 5
            stream["lost"] += 5
            stream["lost_by_gaps"] += 5
            results["ports"][1]["rx_packets"] -= 5

    sides, _ = _sides(tmp_path, spoil=lose)
    poll, sleep = measure(sides, PLAN).modes
    assert poll.steps_lost == (0, 0, 0)
    assert sleep.steps_lost == (5, 5, 5)
    assert poll.steps_sent == pytest.approx((7.3e6 * STEP_SHARE * 0.2,) * 3, rel=0.02)


def waits_without_frames_before_each_step_and_each_look(tmp_path: Path) -> None:
    sides, _ = _sides(tmp_path)
    clocks = [side.read.__self__ for side in sides]  # type: ignore[attr-defined]
    result = measure(sides, PLAN)
    for clock in clocks:
        assert clock.slept_s.count(result.quiet_seconds) == PLAN.steps
        assert clock.slept_s.count(2.5) == PLAN.rounds
    assert result.quiet_seconds > 0.5


def leaves_out_what_stays_invalid(tmp_path: Path) -> None:
    def spoil(results: dict[str, Any]) -> None:
        if results["seconds"] == PLAN.step_seconds or results["streams"][0]["asked_pps"] == 1000.0:
            results.update(tsc_offset_ns=500.0)

    sides, _ = _sides(tmp_path, spoil=spoil)
    poll, sleep = measure(sides, PLAN).modes
    assert (poll.invalid_steps, poll.invalid_latencies) == (0, 0)
    assert (sleep.invalid_steps, sleep.invalid_latencies) == (3, 2)
    assert (sleep.steps_lost, sleep.p50_ns) == ((), ())


def makes_no_steps_without_a_throughput(tmp_path: Path) -> None:
    sides, _ = _sides(tmp_path, spoil=lambda results: results.update(tsc_offset_ns=500.0))
    result = measure(sides, PLAN)
    assert result.step_pps == 0
    assert [(mode.pps, mode.steps_lost, mode.invalid_steps) for mode in result.modes][1] == ((), (), 0)
    assert len(result.modes[0].dl3d_shares) == PLAN.rounds


def keeps_trials_and_result_in_the_record(tmp_path: Path) -> None:
    sides, _ = _sides(tmp_path)
    result = measure(sides, PLAN)
    record = read(sides[0].run.record)
    assert record.idles == (result,)
    assert not record.left_out
    assert [trial.dut for trial in record.trials if trial.test == "free"] == [
        f"dl3d (idle: {idle})" for idle in MODES
    ] * PLAN.steps
