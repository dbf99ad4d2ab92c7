"""The recorded state of an interrupted campaign, from which it is resumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dl3.bench.known import Known
from dl3.bench.recording import Recording, tape_of
from dl3.campaign.duration import Pace
from dl3.campaign.plan import by_key
from dl3.model.campaign import Job, Plan
from dl3.model.fault import UsageFault
from dl3.model.files import read_bounded
from dl3.model.trial import wire_of
from dl3.record.journal import mend
from dl3.record.reader import MOST_BYTES, Record, read

PLAN_LINE = b'{"kind":"plan",'  # start of a record's first line


@dataclass(frozen=True)
class Past:
    """A record with a plan; the last plan is valid."""

    record: Record
    plan: Plan
    jobs: Mapping[str, Job] = field(init=False)  # by key, from all plans: finished jobs may be in an older one

    def __post_init__(self) -> None:
        jobs = {key: job for plan in self.record.plans for key, job in by_key(plan).items()}
        object.__setattr__(self, "jobs", jobs)

    @property
    def done(self) -> set[str]:
        """Keys of jobs that are not run again."""
        return {finished.job for finished in self.record.finished}

    @property
    def begun(self) -> set[str]:
        """Keys of unfinished jobs with trials: they are run as planned at that time."""
        return {trial.job for trial in self.record.trials if trial.job} - self.done

    def known(self) -> Known:
        """Throughputs of finished jobs; those of other jobs are determined again from their trials."""
        finished = {key: job for key, job in self.jobs.items() if key in self.done}
        return Known.of(finished, self.record.results)

    def recording(self, job: str) -> Recording:
        """The recorded trials and results of a job."""
        return tape_of(self.record, job)

    def tape_of_proof(self, wire: str) -> Recording:
        """The recorded trials of an interrupted self-test."""
        trials = [trial for trial in self.record.trials if trial.test == "proof"]
        return Recording([trial for trial in trials if wire_of(trial.facts) in ("", wire)])

    def pace(self) -> Pace:
        """The speed of jobs that were not interrupted."""
        pace = Pace()
        for finished in self.record.finished:
            if finished.is_rest:
                continue
            pace.learn("job", finished.planned_seconds, finished.seconds)
        return pace


def is_begun_plan(path: Path) -> bool:
    """Whether a file contains only an incomplete plan line, left by a killed process."""
    content = read_bounded(path, MOST_BYTES, "a record")
    return b"\n" not in content and (content.startswith(PLAN_LINE) or PLAN_LINE.startswith(content))


def look_into(path: Path, source: str) -> Past | None:
    """The recorded state of the campaign with this source, None if there is none; UsageFault for any other file.

    The file is not changed.
    """
    if not path.exists():
        return None
    record = read(path)
    if not record.lines:
        if is_begun_plan(path):
            return None
        raise UsageFault(f"{path} is not a record: choose another file, or omit --record for a new one")
    if not record.plans:
        raise UsageFault(f"{path} is the record of something else: choose another file, or omit --record for a new one")
    if record.plans[-1].source != source:
        name = record.plans[-1].name
        raise UsageFault(
            f"{path} is the record of the campaign '{name}' with a different campaign file: "
            "choose another file, or omit --record for a new one"
        )
    return Past(record, record.plans[-1])


def read_past(path: Path, source: str) -> Past | None:
    """The same, in order to resume it: an incomplete last line, left by a killed process, is removed.

    Only a file known to be a record of this campaign is modified.
    """
    past = look_into(path, source)
    return look_into(path, source) if mend(path) else past
