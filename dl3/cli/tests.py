"""Where and how the RFC 2544 tests are run by hand: testbed or running programs, jobs, results, exit status."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dl3.bench.conduct import conduct
from dl3.bench.known import Known
from dl3.bench.latency import newest
from dl3.bench.reset import NotAskedFor, Resettable
from dl3.bench.site import Run, facts_of, frames_for
from dl3.bench.stability import watch_of_bed
from dl3.bench.workplace import BUILD
from dl3.cli import given
from dl3.cli.place import Place, device_of, fit_for, new_record, run_at, say
from dl3.cli.progress import Bar
from dl3.dut.beds import open_bed
from dl3.host.watching import MachineWatch
from dl3.lab.command import run
from dl3.model.campaign import DutSpec, Effort, Job, Setup, Skipped, TestName, Text, Traffic, key_by_hand
from dl3.model.deviations import as_rfc, deviations
from dl3.model.fault import Fault, UsageFault
from dl3.model.noun import Noun
from dl3.model.trial import wire_of
from dl3.record.journal import Unwritable, append, now
from dl3.record.reader import read
from dl3.trial.order import Site
from dl3.trial.run import Runner

LAB = Setup(dut=DutSpec(name="dl3d", kind="dl3d"), descriptors=16_384)
RESET_LAB = Setup(dut=DutSpec(name="dl3d", kind="dl3d", options={"wire": "veth"}))  # memif ends with its process


@dataclass(frozen=True)
class Commands:
    """A device that is reset by the user's own commands."""

    process: str
    port: str

    def reset_process(self) -> None:
        """Run the command that resets the process."""
        self._run(self.process, "process")

    def reset_port(self) -> None:
        """Run the command that resets the port."""
        self._run(self.port, "port")

    def _run(self, command: str, what: str) -> None:
        if not command:
            raise NotAskedFor(f"no command resets the {what}: name one with --{what}-command")
        run(shlex.split(command))


@dataclass(frozen=True)
class Ask:
    """The settings from the options."""

    place: Place
    sizes: str
    effort: Effort
    is_rfc: bool = False
    source: Path | None = None  # record that contains the throughput
    commands: Commands | None = None
    campaign: str = field(default_factory=now)  # the same on all testbeds

    def effort_of(self, test: TestName) -> Effort:
        """The user's setting, or that of the RFC."""
        return replace_effort(as_rfc(test), self.effort.step) if self.is_rfc else self.effort


def replace_effort(effort: Effort, step: float) -> Effort:
    """With the user's steps, which are never larger than those of the RFC."""
    return effort.model_copy(update={"step": step})


@dataclass
class Made:
    """The outcome of all tests."""

    record: Path
    dut: str
    results: dict[TestName, list[Noun]] = field(default_factory=dict)
    deviations: list[Text] = field(default_factory=list)
    n_without_result: int = 0


@contextmanager
def course_in_lab(ask: Ask, setup: Setup, record: Path | None, bar: Bar) -> Iterator[tuple[Run, Resettable]]:
    """A testbed for the duration of the block."""
    if ask.place.streams or ask.place.at:
        raise UsageFault("--lab starts its own programs: omit --streams and --at")
    traffic = Traffic(direction=ask.place.direction)
    with open_bed(setup, traffic, BUILD) as bed:
        facts = {**facts_of(bed.generator, bed.dut, BUILD), **bed.facts}
        site = Site(bed.generator, bed.dut, ask.place.dut_name or setup.dut.name, ask.campaign, facts)
        path = record or ask.place.record or new_record(ask.campaign)
        look, runner = watch_of_bed(bed, BUILD).look, Runner(site, watch=MachineWatch())
        yield Run(runner, bed.streams, path, ask.effort.seconds, listener=bar, look=look), bed


@contextmanager
def course_of(ask: Ask, setup: Setup, record: Path | None, bar: Bar) -> Iterator[tuple[Run, Resettable | None]]:
    """On the programs that are already running, or in the lab."""
    if ask.place.is_lab:
        with course_in_lab(ask, setup, record, bar) as (run, bed):
            yield run, bed
        return
    with run_at(ask.place, ask.effort.seconds, bar) as run:
        yield run if record is None else replace(run, record=record), ask.commands


def jobs_of(ask: Ask, test: TestName, setup: Setup, frames: Sequence[str]) -> list[Job]:
    """One job for each frame size; a reset is tested with the smallest only (RFC 2544, 26.6)."""
    traffic, effort = Traffic(direction=ask.place.direction), ask.effort_of(test)
    wanted = frames[:1] if test == "reset" else frames
    return [
        Job(key="", case="", parameters={}, setup=setup, traffic=traffic, test=test, frame=frame, effort=effort)
        for frame in wanted
    ]


def frames_of(ask: Ask, run: Run) -> tuple[str, ...]:
    """Those that were given, else all that the streams support."""
    return given.frames_of(ask.sizes) or frames_for(run.streams, run.site.generator)


def learn(ask: Ask, run: Run, job: Job, known: Known) -> None:
    """The throughput from a record, if one was named."""
    if not ask.source:
        return
    results = [result for result in read(ask.source).results if not result.goal_loss_ratio]
    wire = wire_of(run.site.facts)
    found = newest(results, run.site.dut_name, (job.frame,), wire)
    if not found:
        raise UsageFault(
            f"{ask.source} has no throughput of {run.site.dut_name} with frames of {job.frame}"
            f"{f' over {wire}' if wire else ''}: specify the device with --dut-name, or omit --from"
        )
    known.learn(job, found[0])


def make(ask: Ask, tests: Sequence[TestName], setup: Setup, made: Made | None, bar: Bar) -> Made:
    """The tests one after another; a test without a result is reported and skipped."""
    known = Known()
    with course_of(ask, setup, made.record if made else None, bar) as (run, bed), bar:
        made = made or Made(run.record, device_of(run.site))
        for test in tests:
            jobs = jobs_of(ask, test, setup, frames_of(ask, run))
            for job in jobs:
                learn(ask, run, job, known)
                made.results.setdefault(test, []).extend(results_of(run, job, bed, known, bar))
            made.deviations += [text for text in deviations(jobs[0].effort, test) if text not in made.deviations]
    return made


def results_of(run: Run, job: Job, bed: Any, known: Known, bar: Bar) -> Sequence[Noun]:
    """The results of one job; none after a fault, which is reported and recorded."""
    try:
        return conduct(run, job, bed, known)
    except (UsageFault, Unwritable):
        raise
    except Fault as fault:
        bar.on_fault(job.frame, fault)
        site, key = run.site, key_by_hand(run.site.dut_name, job.test, job.frame)
        append(run.record, Skipped(at=now(), campaign=site.campaign, job=key, reason=str(fault)))
        return ()


def make_all(ask: Ask, tests: Sequence[TestName]) -> Made:
    """All tests; in the lab, those that reset the device run on wires that survive it."""
    bar = Bar()
    fit_for(ask.sizes, ask.place)
    is_apart = ask.place.is_lab and "reset" in tests
    here: list[TestName] = [test for test in tests if not (is_apart and test == "reset")]
    made = None
    try:
        if here:
            made = make(ask, here, LAB, None, bar)
        if is_apart:
            made = make(replace(ask, source=None), ["reset"], RESET_LAB, made, bar)
    except KeyboardInterrupt:
        say("stopped; the trials so far are in the record")
        raise
    assert made is not None, "there is at least one test"  # noqa: S101
    made.n_without_result = bar.n_without_result
    return made
