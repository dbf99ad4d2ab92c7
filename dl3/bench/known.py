"""Throughputs that were found so far, by all that they were found with, so that no test finds one a second time."""

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
    """Grows while jobs are made."""

    found: dict[Place, Throughput] = field(default_factory=dict)
    missed: dict[Place, str] = field(default_factory=dict)  # why a search has no answer

    @classmethod
    def of(cls, jobs: Mapping[str, Job], answers: Iterable[Throughput]) -> "Known":
        """What earlier runs of these jobs (by key) answered; answers of other jobs are left out."""
        known = cls()
        for answer in answers:
            if answer.job in jobs:
                known.learn(jobs[answer.job], answer)
        return known

    def learn(self, job: Job, answer: Throughput) -> None:
        """One more; a later one replaces an earlier one."""
        self.found[place_of(job, answer.goal_loss_ratio)] = answer

    def of_job(self, job: Job) -> Throughput | None:
        """That of the job's strictest goal."""
        return self.found.get(place_of(job, min(job.effort.goals)))

    def miss(self, job: Job, why: str) -> None:
        """The search of that job has no answer."""
        self.missed[place_of(job, min(job.effort.goals))] = why

    def why_missed(self, job: Job) -> str | None:
        """Why a search for the same has had no answer; None where there was none."""
        return self.missed.get(place_of(job, min(job.effort.goals)))
