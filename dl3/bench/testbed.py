"""The input of each test of a job, and the throughput that most tests start from."""

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
from dl3.search.throughput import SearchSettings, Undecided


@dataclass(frozen=True)
class Testbed:
    """A job and everything needed to run it."""

    run: Run
    job: Job
    bed: Bed | None
    known: Known


@dataclass(frozen=True)
class Most:
    """The highest load that can be offered, limited by the line or the tester, summed over all streams."""

    pps: float
    limit: Limit
    ceiling: Trial  # trial at maximum rate

    @property
    def asked_pps(self) -> float:
        """Requested rate of a trial at that load; 0 (no rate) if the tester is the limit."""
        return self.pps if self.limit == "line" else 0.0

    @classmethod
    def of(cls, run: Run, frame: str) -> "Most":
        """Determined by a short trial at maximum rate."""
        ceiling = ceiling_of(run, frame)
        bounds = bounds_of(ceiling, Lines.of(run.site.generator, run.streams), 0.0)
        return cls(bounds.high_pps, bounds.high_is, ceiling)


def head_of(testbed: Testbed, trial: Trial) -> dict[str, Any]:
    """The fields common to all results, with the frame of a trial."""
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
    """Search for the throughput at all goals; the results are recorded and known from then on."""
    effort, frame = testbed.job.effort, testbed.job.frame
    settings = SearchSettings(resolution=effort.resolution)
    goals, repeats, exceed = effort.goals, effort.repetitions, effort.exceed
    wanted = Wanted((frame,), settings, method=effort.method, goals=goals, repeats=repeats, exceed=exceed)
    try:
        found = [one.result for one in find(testbed.run, wanted, frame, 0.0)]
    except Undecided as fault:
        testbed.known.miss(testbed.job, str(fault))
        raise
    for result in found:
        testbed.known.learn(testbed.job, result)
    return found


def best_throughput_of(testbed: Testbed) -> Throughput:
    """The throughput at the strictest goal, even if 0: the known one, or a new search unless it failed before."""
    if known := testbed.known.of_job(testbed.job):
        return known
    if why := testbed.known.why_missed(testbed.job):
        raise Undecided(f"no result: this test begins with the throughput, and its search had {why}")
    return min(throughputs_of(testbed), key=lambda found: found.goal_loss_ratio)


def throughput_of(testbed: Testbed) -> Throughput:
    """The same; Fault if it is 0."""
    result = best_throughput_of(testbed)
    if not result.pps:
        raise Fault(
            f"frames of {testbed.job.frame}: {result.dut} has no throughput, so no share of it can be offered: look at "
            "the trials of its search"
        )
    return result
