"""Throughputs found so far, by everything they depend on, so that no test searches for one twice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dl3.model.campaign import Job
from dl3.model.trial import Throughput

Place = tuple[str, str, str, float, float]


def place_of(job: Job, goal: float) -> Place:
    """What a throughput depends on: setup, traffic, frame, goal and exceed ratio."""
    return job.setup.model_dump_json(), job.traffic.model_dump_json(), job.frame, goal, job.effort.exceed


@dataclass
class Known:
    """Filled as jobs are run."""

    found: dict[Place, Throughput] = field(default_factory=dict)
    missed: dict[Place, str] = field(default_factory=dict)  # why a search has no result

    @classmethod
    def of(cls, jobs: Mapping[str, Job], results: Iterable[Throughput]) -> "Known":
        """Results of earlier runs of these jobs (by key); results of other jobs are ignored."""
        known = cls()
        for result in results:
            if result.job in jobs:
                known.learn(jobs[result.job], result)
        return known

    def learn(self, job: Job, result: Throughput) -> None:
        """Add a result; it replaces an earlier one."""
        self.found[place_of(job, result.goal_loss_ratio)] = result

    def of_job(self, job: Job) -> Throughput | None:
        """The throughput of the job's strictest goal."""
        return self.found.get(place_of(job, min(job.effort.goals)))

    def miss(self, job: Job, why: str) -> None:
        """The search of this job has no result."""
        self.missed[place_of(job, min(job.effort.goals))] = why

    def why_missed(self, job: Job) -> str | None:
        """Why an equivalent search had no result; None if there was no such search."""
        return self.missed.get(place_of(job, min(job.effort.goals)))
