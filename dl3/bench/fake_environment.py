"""Shared by the campaign tests: a simulated generator, device and clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dl3.bench.campaign import Conductor, Environment, Listener
from dl3.bench.past import read_past
from dl3.bench.site import streams_of
from dl3.campaign.fake import VOCABULARY
from dl3.campaign.machine import Machine
from dl3.campaign.plan import planned
from dl3.campaign.reader import parsed
from dl3.control.remote import Machine as Address
from dl3.dut.bed import Bed
from dl3.host.noise import Look
from dl3.model.campaign import Job, Plan, Setup, Traffic
from dl3.model.fault import Fault
from dl3.model.stream import Stream
from dl3.record.journal import append
from dl3.record.reader import parse
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Site
from dl3.trial.run import Runner

FILE = """name: mine
title: Mine
duts: dl3d
defaults: {frames: [64, 512], tests: [throughput, latency], effort: {seconds: 1, method: binary, resolution: 0.02}}
cases:
  - {key: a, title: A, parameters: {huge pages: [256 MiB, 512 MiB]}}
  - {key: b, title: B, parameters: {flows: 7}, tests: throughput}
"""
MACHINE = Machine(n_cores=2, available_mib=9999)


@dataclass(frozen=True)
class FakeBed:
    """A generator and its simulated device."""

    generator: FakeGenerator
    dut: None = None
    at: None = None
    wire: str = "memif"
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def streams(self) -> tuple[Stream, ...]:
        return streams_of(self.generator, None)

    def nothing(self) -> None:
        """Nothing else is needed in these tests."""

    freeze = thaw = reset_process = reset_port = nothing


@dataclass
class FakeEnvironment:
    """Counts testbeds; time advances during trials."""

    time_s: float = 0.0
    beds: list[Setup] = field(default_factory=list)
    slowness: float = 1.0
    cannot_start: str = ""  # the reason
    spoil: Any = field(default=lambda _results: None)

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds * self.slowness

    @contextmanager
    def bed(self, setup: Setup, _traffic: Traffic) -> Iterator[Bed]:
        if self.cannot_start:
            raise Fault(self.cannot_start)
        self.beds.append(setup)
        self.time_s += 3
        yield FakeBed(FakeGenerator(device_pps=1e4 * setup.memory_mib, spoil=self.spoil))

    def environment(self) -> Environment:
        def runner(site: Site, _at: Address | None) -> Runner:
            return Runner(site, self.sleep)

        return Environment(self.bed, lambda _bed: {"kernel": "6"}, runner, lambda _bed: Look, lambda: self.time_s)


class NotingListener(Listener):
    """Records all events."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.skipped: dict[str, str] = {}
        self.left_s: list[float] = []
        self.plans: list[Plan] = []

    def on_job(self, job: Job, _n_done: int, left_s: float) -> None:
        self.jobs.append(job.key)
        self.left_s.append(left_s)

    def on_skip(self, job: Job, reason: str) -> None:
        self.skipped[job.key] = reason

    def on_plan(self, plan: Plan) -> None:
        self.plans.append(plan)


def plan(budget_s: float = 0.0) -> Plan:
    return planned(parsed(Path("c.yaml"), FILE.encode(), VOCABULARY), MACHINE, "now", budget_s)


def conducted(
    path: Path, fake: FakeEnvironment | None = None, budget_s: float = 0.0, listener: NotingListener | None = None
) -> Conductor:
    """As in the command: starts a new record or continues one."""
    past = read_past(path, FILE)
    holds = past.plan if past else plan(budget_s)
    if not past:
        append(path, holds)
    made = Conductor(
        holds, path, (fake or FakeEnvironment()).environment(), listener or NotingListener(), past, budget_s, plan()
    )
    made.run()
    return made


def contents_of(content: bytes) -> list[Any]:
    """The results of a record and their trials, without times."""
    record = parse(Path("r"), content)
    results = [(a.job, a.pps, a.upper_pps, a.n_trials, a.n_invalid, a.limited_by) for a in record.results]
    trials = [(t.job, t.test, t.frame, t.asked_pps, t.account.received) for t in record.trials]
    return [
        *results,
        *trials,
        *sorted(finished.job for finished in record.finished),
        len(record.proofs),
        record.left_out,
    ]
