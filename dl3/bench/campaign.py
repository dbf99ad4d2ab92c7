"""Runs a campaign: one testbed for all jobs that share it; records every job and continues after faults."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dl3.bench.conduct import conduct
from dl3.bench.far import runner_of
from dl3.bench.known import Known
from dl3.bench.past import Past
from dl3.bench.proof import loop_of, prove
from dl3.bench.recording import Recording
from dl3.bench.site import ProgressListener, Run, facts_of
from dl3.bench.stability import watch_of_bed
from dl3.bench.workplace import BUILD
from dl3.campaign.duration import PROOF_S, Pace, bed_of, bed_s, grouped, job_s, total_s
from dl3.campaign.plan import by_key, comparable, jobs_of, refitted, shortest_of, with_jobs
from dl3.campaign.proofs import Wanted, proofs_of
from dl3.control.remote import Machine
from dl3.dut.bed import Bed
from dl3.dut.beds import open_bed
from dl3.host.noise import Look
from dl3.model.campaign import Finished, Job, Plan, Setup, Skipped, Traffic
from dl3.model.fault import Fault, UsageFault
from dl3.model.noun import Noun
from dl3.model.trial import Trial
from dl3.record.journal import Unwritable, append, now
from dl3.search.throughput import Undecided
from dl3.trial.order import Site
from dl3.trial.run import Runner

SPARE = 0.5  # fraction of the remaining time: jobs that need less are lengthened again; below 1 - RESERVE
BESIDE_S = 5.0  # subtracted from the budget for start and exit of the program


class Listener(ProgressListener):
    """Receives the progress of a campaign. All methods do nothing here."""

    def on_bed(self, setup: Setup, left_s: float) -> None:
        """A device is about to be started."""

    def on_proof(self, wire: str, left_s: float) -> None:
        """The tester's self-test starts."""

    def on_job(self, job: Job, n_done: int, left_s: float) -> None:
        """A job starts; `left_s` is the estimated time for everything that remains."""

    def on_done(self, job: Job, results: Sequence[Noun]) -> None:
        """A job has finished."""

    def on_skip(self, job: Job, reason: str) -> None:
        """A job has no result."""

    def on_fault_of_bed(self, fault: Fault) -> None:
        """A device did not stop properly, or a self-test failed."""

    def on_plan(self, plan: Plan) -> None:
        """The remaining jobs were shortened or lengthened."""


@dataclass(frozen=True)
class Forwarded(ProgressListener):
    """Adds the estimated time of all later jobs to that of the current one."""

    listener: Listener
    later_s: float

    def on_left(self, frame: str, seconds: float) -> None:
        """Of all jobs."""
        self.listener.on_left(frame, seconds + self.later_s)

    def on_trial(self, trial: Trial) -> None:
        """Unchanged."""
        self.listener.on_trial(trial)


def started(setup: Setup, traffic: Traffic) -> AbstractContextManager[Bed]:
    """With the programs of this build."""
    return open_bed(setup, traffic, BUILD)


def facts_at(bed: Bed) -> Mapping[str, object]:
    """Facts of the machine, the build, both programs and the testbed."""
    return {**facts_of(bed.generator, bed.dut, BUILD), **bed.facts}


def look_at(bed: Bed) -> Callable[[], Look]:
    """Returns the function that takes snapshots of the cores before and after searches."""
    return watch_of_bed(bed, BUILD).look


@dataclass(frozen=True)
class Environment:
    """External dependencies, replaced in tests."""

    open_bed: Callable[[Setup, Traffic], AbstractContextManager[Bed]] = started
    facts: Callable[[Bed], Mapping[str, object]] = facts_at
    runner: Callable[[Site, Machine | None], Runner] = runner_of
    look: Callable[[Bed], Callable[[], Look]] = look_at
    clock: Callable[[], float] = time.monotonic


@dataclass
class Conductor:
    """Runs all unfinished jobs of a plan; `plan` is the current one."""

    plan: Plan
    record: Path
    environment: Environment = field(default_factory=Environment)
    listener: Listener = field(default_factory=Listener)
    past: Past | None = None
    budget_s: float = 0.0  # from now on; 0: none
    whole: Plan | None = None  # the plan without a budget, used when time becomes available again
    failed: dict[str, str] = field(default_factory=dict)  # reasons, by job key

    def __post_init__(self) -> None:
        self.done: set[str] = self.past.done if self.past else set()
        self._known = self.past.known() if self.past else Known()
        self._pace = self.past.pace() if self.past else Pace()
        self._begun: set[str] = self.past.begun if self.past else set()
        self._whole = comparable(self.plan, self.whole)
        self._deadline_s = self.environment.clock() + self.budget_s - BESIDE_S if self.budget_s else None

    def left(self) -> list[Job]:
        """Jobs still to be run, in order."""
        return [job for job in jobs_of(self.plan) if job.key not in self.done and job.key not in self.failed]

    def rest(self) -> Plan:
        """The remaining plan, fitted into the budget, as if started now. Nothing is recorded."""
        proofs_s = sum(len(wanted.frames) for wanted in self._unproved()) * PROOF_S
        plan = self._within_budget(-proofs_s)
        left = [job for job in jobs_of(plan) if job.key not in self.done]
        had_jobs = {case.key for case in plan.cases if case.jobs}
        cases = [case for case in with_jobs(plan.cases, left) if case.jobs or case.key not in had_jobs]
        return plan.model_copy(update={"cases": tuple(cases), "seconds": total_s(left, self._pace) + proofs_s})

    def run(self) -> None:
        """Run the self-tests, then all jobs. Unwritable if the record can no longer be written."""
        for wanted in self._unproved():
            self._prove(wanted)
        self._keep_to_budget()
        while left := self.left():
            self._make_group([job.key for job in grouped(left)[0]], left[0])

    def _unproved(self) -> list[Wanted]:
        """Self-tests still to be run."""
        proved = {proof.wire for proof in self.past.record.proofs} if self.past else set()
        return [wanted for wanted in proofs_of(self.left()) if wanted.wire not in proved]

    def _prove(self, wanted: Wanted) -> None:
        """Run the self-test of one wire. A failure is reported to the listener and shown in the report."""
        job = wanted.first
        loop = job.model_copy(update={"key": "", "setup": loop_of(job.setup, wanted.wire)})
        self.listener.on_proof(wanted.wire, total_s(self.left(), self._pace, len(wanted.frames)))
        try:
            with self._bed(loop) as bed:
                run = self._run(loop, bed, total_s(self.left(), self._pace))
                recording = self.past.tape_of_proof(wanted.wire) if self.past else Recording()
                prove(replace(run, seconds=wanted.seconds, recording=recording), wanted.frames, wanted.wire)
        except Unwritable:
            raise
        except Fault as fault:
            self.listener.on_fault_of_bed(fault)

    def _make_group(self, keys: Sequence[str], first: Job) -> None:
        """Run the jobs of one testbed, until one of them may have broken it."""
        self.listener.on_bed(first.setup, total_s(self.left(), self._pace))
        try:
            with self._bed(first) as bed:
                for key in keys:
                    job = next((job for job in self.left() if job.key == key), None)
                    if job and not self._make(job, bed):
                        break
                    self._keep_to_budget(has_bed=True)
        except NoBed as fault:
            for job in self.left():
                if job.key in keys:
                    self._skip(job, str(fault))

    @contextmanager
    def _bed(self, job: Job) -> Iterator[Bed]:
        """Open a testbed; NoBed if that fails. Faults while closing it are only reported."""
        began_s = self.environment.clock()
        try:
            context = self.environment.open_bed(job.setup, job.traffic)
            bed = context.__enter__()
        except Unwritable:
            raise
        except Fault as fault:
            raise NoBed(str(fault)) from fault
        opened_s = self.environment.clock()
        try:
            yield bed
        finally:
            closing_s = self.environment.clock()
            try:
                context.__exit__(None, None, None)
            except Fault as fault:
                self.listener.on_fault_of_bed(fault)
            took_s = opened_s - began_s + self.environment.clock() - closing_s
            self._pace.learn("bed", bed_s(bed_of(job)), took_s)

    def _make(self, job: Job, bed: Bed) -> bool:
        """Run one job; returns whether the testbed is still usable."""
        later_s = total_s([other for other in self.left() if other.key != job.key], self._pace)
        self.listener.on_job(job, len(self.done), later_s + job_s(job) * self._pace.factor("job"))
        began_s = self.environment.clock()
        try:
            results = conduct(self._run(job, bed, later_s), job, bed, self._known)
        except Unwritable:
            raise
        except Fault as fault:
            self._skip(job, str(fault))
            return isinstance(fault, Undecided)
        took_s = self.environment.clock() - began_s
        planned_s, is_rest = job_s(job), job.key in self._begun
        if not is_rest:  # the duration of a replayed job is not representative
            self._pace.learn("job", planned_s, took_s)
        line = Finished(
            at=now(),
            campaign=self.plan.campaign,
            job=job.key,
            seconds=took_s,
            planned_seconds=planned_s,
            is_rest=is_rest,
        )
        append(self.record, line)
        self.done.add(job.key)
        self.listener.on_done(job, results)
        return True

    def _run(self, job: Job, bed: Bed, later_s: float) -> Run:
        site = Site(bed.generator, bed.dut, job.setup.dut.name, self.plan.campaign, self.environment.facts(bed))
        return Run(
            self.environment.runner(site, bed.at),
            bed.streams,
            self.record,
            job.effort.seconds,
            listener=Forwarded(self.listener, later_s),
            look=self.environment.look(bed),
            job=job.key,
            recording=self.past.recording(job.key) if self.past and job.key else Recording(),
        )

    def _skip(self, job: Job, reason: str) -> None:
        self.failed[job.key] = reason
        append(self.record, Skipped(at=now(), campaign=self.plan.campaign, job=job.key, reason=reason))
        self.listener.on_skip(job, reason)

    def _keep_to_budget(self, has_bed: bool = False) -> None:
        """Shorten or lengthen later jobs to match the remaining time, and record the new plan."""
        left = [job for job in self.left() if job.key not in self._begun]
        spared_s = bed_s(bed_of(left[0])) * self._pace.factor("bed") if has_bed and left else 0.0
        plan = self._within_budget(spared_s)
        if jobs_of(plan) != jobs_of(self.plan):
            self.plan = plan.model_copy(update={"at": now()})
            append(self.record, self.plan)
            self.listener.on_plan(self.plan)

    def _within_budget(self, spared_s: float) -> Plan:
        """The plan with later jobs fitted into the remaining time plus `spared_s`."""
        left = {job.key for job in self.left()} - self._begun
        gone = self._gone()
        if self._deadline_s is None or not (left or gone):
            return self.plan
        begun_s = total_s([job for job in self.left() if job.key in self._begun], self._pace)
        left_s = self._deadline_s - self.environment.clock() - begun_s + spared_s
        needed_s = total_s([job for job in self.left() if job.key in left], self._pace)
        if needed_s > left_s:
            plans = self._refitted([left], left_s)
            return next(plans, shortest_of(self.plan, self._whole, left, self._pace))
        if self.plan.shortened and needed_s < left_s * SPARE:
            return next(self._refitted([left | gone, left], left_s), self.plan)
        return self.plan

    def _gone(self) -> set[str]:
        """Jobs that were removed earlier and whose frame size is covered by a self-test."""
        whole, now_jobs = by_key(self._whole), by_key(self.plan)
        proved = {(wanted.wire, frame) for wanted in proofs_of(now_jobs.values()) for frame in wanted.frames}
        return {
            key
            for key, job in whole.items()
            if key not in now_jobs and all((wanted.wire, job.frame) in proved for wanted in proofs_of([job]))
        }

    def _refitted(self, choices: Sequence[Collection[str]], seconds: float) -> Iterator[Plan]:
        """Plans that fit, with these jobs in place of the remaining ones."""
        for keys in choices:
            with suppress(UsageFault):
                yield refitted(self.plan, self._whole, keys, seconds, self._pace)


class NoBed(Fault):
    """The device under test could not be started; nothing can be measured with it."""
