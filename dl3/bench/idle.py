"""Compares dl3d polling with dl3d sleeping while no frame arrives: CPU time, latency and loss.

Both labs are open with dl3gen and dl3d, and use the cores alternately; the other one is suspended. A round observes the
workers without traffic, then measures latency at a low rate, then searches the throughput. The load steps follow at the
end: after a time without frames, the load jumps to nearly the throughput of both. Nothing is tuned for the steps.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from dl3.bench.site import Run
from dl3.bench.stability import Programs
from dl3.bench.throughput import Wanted, find
from dl3.control.replies import Workers
from dl3.control.workers import idle_of
from dl3.host.threads import cpu_time
from dl3.lab.pair import Pair
from dl3.model.results import Idle, IdleMode
from dl3.model.trial import Throughput, Trial
from dl3.record.journal import now
from dl3.search.throughput import SearchSettings, Undecided
from dl3.trial.order import Order

Mode = Literal["poll", "sleep"]
MODES: tuple[Mode, ...] = ("poll", "sleep")
FRAME = "64"
LATENCY_PPS = 1000.0
STEP_SHARE = 0.9  # fraction of the lower throughput
QUIET_S = 0.6  # before a step
RUN_OVER_S = 2.5  # dl3gen's worker sleeps from 2 s after the last frame on
TERMS = SearchSettings(resolution=0.02, retries=3)  # as in a self-test, which has to be short
TRIES = 4  # of an INVALID trial
SEARCH_TRIALS = 8  # estimate, including the ceiling


@dataclass(frozen=True)
class Plan:
    """Number and duration of the measurements."""

    rounds: int = 3
    seconds: float = 5.0  # length of an observation without traffic, and of a latency trial
    search_seconds: float = 0.2  # trial duration of the search, as long as a step
    steps: int = 10
    step_seconds: float = 0.2

    def left_s(self, run: Run, rounds_left: int, steps_left: int) -> float:
        """Estimated time for the remaining rounds and steps, in both modes."""
        search_s = SEARCH_TRIALS * (self.search_seconds + run.trial_s_beside)
        round_s = RUN_OVER_S + 2 * self.seconds + run.trial_s_beside + search_s
        return 2 * (rounds_left * round_s + steps_left * (QUIET_S + self.step_seconds + run.trial_s_beside))


@dataclass(frozen=True)
class Reading:
    """CPU time of the workers so far, in seconds."""

    at_s: float
    dl3d_s: float
    asleep_s: float
    dl3gen_s: float
    woken_by: str = ""  # what wakes dl3d's worker: 'frames' or 'time'


@dataclass(frozen=True)
class Round:
    """Results of one round; `result` is missing if the search had no result."""

    dl3d_share: float
    asleep_share: float
    dl3gen_share: float
    woken_by: str
    latency: Trial
    result: Throughput | None


@dataclass(frozen=True)
class Side:
    """Both programs of a lab, and their results."""

    idle: Mode
    programs: Programs
    run: Run
    read: Callable[[], Reading]
    rounds: list[Round] = field(default_factory=list)
    steps: list[Trial] = field(default_factory=list)

    @property
    def results(self) -> list[Throughput]:
        """The throughputs of all rounds that have one."""
        return [one.result for one in self.rounds if one.result]


def asleep_s(workers: Workers) -> float:
    """Total sleep time of the workers."""
    cycles = sum(worker.counters.get("slept_cycles", 0) for worker in workers.workers)
    return cycles / workers.tsc_hz if workers.tsc_hz else 0.0


def reader_of(lab: Pair) -> Callable[[], Reading]:
    """A function that reads the CPU time of a lab's workers from the kernel's thread statistics."""

    def read() -> Reading:
        workers = lab.dut.ask(Workers, "workers") if lab.dut else Workers(workers=())
        dl3d_s = cpu_time(lab.dut_process.process.pid, lab.endpoint.core).ran_s
        dl3gen_s = cpu_time(lab.generator_process.process.pid, lab.tester.cores[0]).ran_s
        return Reading(time.monotonic(), dl3d_s, asleep_s(workers), dl3gen_s, idle_of(workers).get("woken_by", ""))

    return read


@contextmanager
def turn(side: Side) -> Iterator[None]:
    """Use the cores for this side."""
    side.programs.thaw()
    try:
        yield
    finally:
        side.programs.freeze()


def shares_between(before: Reading, after: Reading) -> tuple[float, float, float]:
    """Fractions of the time between two readings: CPU time of dl3d's worker, its sleep time, CPU time of dl3gen's
    worker.
    """
    seconds = after.at_s - before.at_s
    gains = (after.dl3d_s - before.dl3d_s, after.asleep_s - before.asleep_s, after.dl3gen_s - before.dl3gen_s)
    dl3d, asleep, dl3gen = (gain / seconds for gain in gains)
    return dl3d, asleep, dl3gen


def valid_trial(run: Run, order: Order, quiet_s: float = 0.0) -> Trial:
    """A valid trial, or the last of several attempts; each follows a time without frames."""
    for _ in range(TRIES):
        run.runner.sleep(quiet_s)
        trial = run.trial(order)
        if not trial.invalid:
            break
    return trial


def throughput_of(run: Run) -> Throughput | None:
    """The lossless throughput; if the search has no result, None and a report to the listener."""
    try:
        return find(run, Wanted((FRAME,), TERMS, method="binary"), FRAME, 0.0)[0].result
    except Undecided as fault:
        run.listener.on_fault(FRAME, fault)
        return None


def round_of(side: Side, plan: Plan) -> Round:
    """One round, without the steps."""
    run = side.run
    run.runner.sleep(RUN_OVER_S)
    before = side.read()
    run.runner.sleep(plan.seconds)
    after = side.read()
    shares = shares_between(before, after)
    order = Order(run.streams, FRAME, LATENCY_PPS, plan.seconds, "latency", warm_up_s=run.warm_up_s)
    latency = valid_trial(run, order)
    return Round(*shares, after.woken_by, latency, throughput_of(replace(run, seconds=plan.search_seconds)))


def step_pps_of(sides: Sequence[Side]) -> float:
    """Rate of a step: a fraction of the lower throughput; 0 if one is unknown."""
    return STEP_SHARE * min(median([result.pps for result in side.results] or [0.0]) for side in sides)


def mode_of(side: Side) -> IdleMode:
    """The results of one side."""
    latencies = [one.latency for one in side.rounds if not one.latency.invalid]
    steps = [trial for trial in side.steps if not trial.invalid]
    return IdleMode(
        idle=side.idle,
        woken_by=side.rounds[-1].woken_by,
        dl3d_shares=tuple(one.dl3d_share for one in side.rounds),
        asleep_shares=tuple(one.asleep_share for one in side.rounds),
        dl3gen_shares=tuple(one.dl3gen_share for one in side.rounds),
        p50_ns=tuple(trial.latency.p50 for trial in latencies),
        p99_9_ns=tuple(trial.latency.p99_9 for trial in latencies),
        invalid_latencies=len(side.rounds) - len(latencies),
        pps=tuple(result.pps for result in side.results),
        is_at_least=any(result.limited_by == "generator" for result in side.results),
        steps_sent=tuple(trial.account.sent for trial in steps),
        steps_lost=tuple(trial.account.lost for trial in steps),
        invalid_steps=len(side.steps) - len(steps),
    )


def measure(sides: Sequence[Side], plan: Plan) -> Idle:
    """Run all rounds, then all steps, alternating between the modes; returns the recorded result."""
    run = sides[0].run
    for i in range(plan.rounds):
        for side in sides:
            run.listener.on_left(FRAME, plan.left_s(run, plan.rounds - i, plan.steps))
            with turn(side):
                side.rounds.append(round_of(side, plan))
    step_pps = step_pps_of(sides)
    for i in range(plan.steps if step_pps else 0):
        run.listener.on_left(FRAME, plan.left_s(run, 0, plan.steps - i))
        for side in sides:
            order = Order(side.run.streams, FRAME, step_pps, plan.step_seconds, warm_up_s=0.0)
            with turn(side):
                side.steps.append(valid_trial(side.run, order, QUIET_S))
    result = Idle(
        at=now(),
        campaign=run.site.campaign,
        frame=FRAME,
        seconds=plan.seconds,
        latency_pps=LATENCY_PPS,
        step_pps=step_pps,
        step_seconds=plan.step_seconds,
        quiet_seconds=QUIET_S,
        modes=tuple(mode_of(side) for side in sides),
        noise=tuple(dict.fromkeys(reason for side in sides for one in side.results for reason in one.noise)),
        facts=dict(run.site.facts),
    )
    run.keep(result)
    return result
