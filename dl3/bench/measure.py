"""Measures one program: starts it, samples it, records each sample."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dl3.bench.onecore import Job, started
from dl3.bench.workplace import BUILD, Workplace
from dl3.model.sample import Sample
from dl3.record.facts import Facts, collect
from dl3.record.journal import SampleRecord, append, now


def trial_of(job: Job, sample: Sample, facts: Facts) -> SampleRecord:
    """The record of one sample."""
    return SampleRecord(
        at=now(),
        name=job.name,
        command=list(job.command),
        environment={
            "ONECORE_TABLE": job.table.name,
            "ONECORE_BURST": str(job.max_burst or ""),
            "ONECORE_RING": str(job.ring or ""),
        },
        core=job.core,
        seconds=sample.seconds,
        core_share=sample.core_share,
        received_pps=sample.received_pps,
        sent_pps=sample.sent_pps,
        cycles_per_packet=sample.cycles_per_packet,
        facts=facts,
    )


@dataclass(frozen=True)
class Plan:
    """Number and duration of samples."""

    samples: int = 3
    seconds: float = 3.0


def step_aside(core: int) -> None:
    """Leave the measured core to the measured program, if there is another core."""
    others = os.sched_getaffinity(0) - {core}
    if others:
        os.sched_setaffinity(0, others)


def measure(job: Job, place: Workplace, plan: Plan, tell: Callable[[Sample], None], record: Path) -> Sequence[Sample]:
    """Run the program and take the samples; `tell` is called with each one."""
    samples = []
    with started(job, place) as runner:
        facts = collect(BUILD)
        for _ in range(plan.samples):
            sample = runner.measure(plan.seconds)
            append(record, trial_of(job, sample, facts))
            tell(sample)
            samples.append(sample)
    return samples
