"""What a record has of a campaign that was begun: with it the campaign goes on as if nobody had cut it short."""

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

PLAN_LINE = b'{"kind":"plan",'  # how the first line of a record begins


@dataclass(frozen=True)
class Past:
    """A record that holds a plan; the last plan holds."""

    record: Record
    plan: Plan
    jobs: Mapping[str, Job] = field(init=False)  # by key, of all plans: one that is finished may be in an older one

    def __post_init__(self) -> None:
        jobs = {key: job for plan in self.record.plans for key, job in by_key(plan).items()}
        object.__setattr__(self, "jobs", jobs)

    @property
    def done(self) -> set[str]:
        """Keys of jobs that are not made again."""
        return {finished.job for finished in self.record.finished}

    @property
    def begun(self) -> set[str]:
        """Keys of jobs that have trials and are not done: they are made as they were planned then."""
        return {trial.job for trial in self.record.trials if trial.job} - self.done

    def known(self) -> Known:
        """Throughputs that finished jobs found; those of others are found again, from their trials."""
        finished = {key: job for key, job in self.jobs.items() if key in self.done}
        return Known.of(finished, self.record.answers)

    def recording(self, job: str) -> Recording:
        """All that is there of a job."""
        return tape_of(self.record, job)

    def tape_of_proof(self, wire: str) -> Recording:
        """Of a proof that was cut short."""
        trials = [trial for trial in self.record.trials if trial.test == "proof"]
        return Recording([trial for trial in trials if wire_of(trial.facts) in ("", wire)])

    def pace(self) -> Pace:
        """How fast jobs went that were made in one go."""
        pace = Pace()
        for finished in self.record.finished:
            if finished.is_rest:
                continue
            pace.learn("job", finished.planned_seconds, finished.seconds)
        return pace


def is_begun_plan(path: Path) -> bool:
    """Whether a file is no more than a plan's line that somebody was killed in."""
    content = read_bounded(path, MOST_BYTES, "a record")
    return b"\n" not in content and (content.startswith(PLAN_LINE) or PLAN_LINE.startswith(content))


def look_into(path: Path, source: str) -> Past | None:
    """What is there of the campaign with this text, None when nothing is; UsageFault for a file of anything else.

    The file stays as it is.
    """
    if not path.exists():
        return None
    record = read(path)
    if not record.lines:
        if is_begun_plan(path):
            return None
        raise UsageFault(f"{path} is no record: name another file, or none for a new one")
    if not record.plans:
        raise UsageFault(f"{path} is the record of something else: name another file, or none for a new one")
    if record.plans[-1].source != source:
        name = record.plans[-1].name
        raise UsageFault(
            f"{path} is the record of the campaign '{name}' with a different campaign file: "
            "name another file, or none for a new one"
        )
    return Past(record, record.plans[-1])


def read_past(path: Path, source: str) -> Past | None:
    """The same, to go on with it: half a line at the end, in which somebody was killed, is cut off.

    Nothing is cut off a file that is not known to be a record of this campaign.
    """
    past = look_into(path, source)
    return look_into(path, source) if mend(path) else past
