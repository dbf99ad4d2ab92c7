"""What each test of a job is given, and the throughput that most of them begin with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dl3.bench.known import Known
from dl3.bench.site import Lines, Run
from dl3.bench.throughput import Wanted, bounds_of, ceiling_of, find
from dl3.dut.bed import Bed
from dl3.model.campaign import Job
from dl3.model.fault import Fault
from dl3.model.trial import Limit, Throughput, Trial
from dl3.record.journal import now
from dl3.search.throughput import Terms, Undecided


@dataclass(frozen=True)
class Testbed:
    """A job and all that it is made with."""

    run: Run
    job: Job
    bed: Bed | None
    known: Known


@dataclass(frozen=True)
class Most:
    """The highest load that can be offered, the line's or the tester's, all streams together."""

    pps: float
    limit: Limit
    ceiling: Trial  # as fast as can be

    @property
    def asked_pps(self) -> float:
        """What a trial at that load asks for: a tester at its own limit is told no rate, 0."""
        return self.pps if self.limit == "line" else 0.0

    @classmethod
    def of(cls, run: Run, frame: str) -> "Most":
        """What a short trial as fast as can be shows."""
        ceiling = ceiling_of(run, frame)
        bounds = bounds_of(ceiling, Lines.of(run.site.generator, run.streams), 0.0)
        return cls(bounds.high_pps, bounds.high_is, ceiling)


def head_of(testbed: Testbed, trial: Trial) -> dict[str, Any]:
    """What all answers have, with the frame of a trial."""
    site = testbed.run.site
    return {
        "at": now(),
        "campaign": site.campaign,
        "dut": site.dut_name,
        "frame": trial.frame,
        "mean_bytes": trial.mean_bytes,
        "job": testbed.run.job,
        "facts": dict(site.facts),
    }


def throughputs_of(testbed: Testbed) -> Sequence[Throughput]:
    """Search for the throughput at all goals; the answers are in the record, and known from then on."""
    effort, frame = testbed.job.effort, testbed.job.frame
    terms = Terms(resolution=effort.resolution)
    goals, repeats, exceed = effort.goals, effort.repetitions, effort.exceed
    wanted = Wanted((frame,), terms, method=effort.method, goals=goals, repeats=repeats, exceed=exceed)
    try:
        found = [one.answer for one in find(testbed.run, wanted, frame, 0.0)]
    except Undecided as fault:
        testbed.known.miss(testbed.job, str(fault))
        raise
    for answer in found:
        testbed.known.learn(testbed.job, answer)
    return found


def best_throughput_of(testbed: Testbed) -> Throughput:
    """The throughput at the strictest goal, be it 0: as it is known, else found now, unless that has failed before."""
    if known := testbed.known.of_job(testbed.job):
        return known
    if why := testbed.known.why_missed(testbed.job):
        raise Undecided(f"no answer: this test begins with the throughput, and its search had {why}")
    return min(throughputs_of(testbed), key=lambda found: found.goal_loss_ratio)


def throughput_of(testbed: Testbed) -> Throughput:
    """The same, when there is some."""
    answer = best_throughput_of(testbed)
    if not answer.pps:
        raise Fault(
            f"frames of {testbed.job.frame}: {answer.dut} has no throughput, so no share of it can be offered: look at "
            "the trials of its search"
        )
    return answer
