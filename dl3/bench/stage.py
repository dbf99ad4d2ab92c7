"""What each test of a job is given, and the throughput that most of them begin with."""

from collections.abc import Sequence
from dataclasses import dataclass

from dl3.bench.known import Known
from dl3.bench.site import Course
from dl3.bench.throughput import Wanted, find
from dl3.dut.bed import Bed
from dl3.model.campaign import Job
from dl3.model.fault import Fault
from dl3.model.trial import Throughput
from dl3.search.throughput import Terms


@dataclass(frozen=True)
class Stage:
    """A job and all that it is made with."""

    course: Course
    job: Job
    bed: Bed | None
    known: Known


def throughputs_of(stage: Stage) -> Sequence[Throughput]:
    """Search for the throughput at all goals; the answers are in the record, and known from then on."""
    effort, frame = stage.job.effort, stage.job.frame
    terms = Terms(resolution=effort.resolution)
    wanted = Wanted((frame,), terms, method=effort.method, goals=effort.goals, repeats=effort.repetitions)
    found = [one.answer for one in find(stage.course, wanted, frame, 0.0)]
    for answer in found:
        stage.known.learn(stage.job, answer)
    return found


def throughput_of(stage: Stage) -> Throughput:
    """The throughput at the strictest goal: as it is known, else found now."""
    answer = stage.known.of_job(stage.job) or min(throughputs_of(stage), key=lambda found: found.goal_loss_ratio)
    if not answer.pps:
        raise Fault(
            f"frames of {stage.job.frame}: {answer.dut} has no throughput, so no share of it can be offered: look at "
            "the trials of its search"
        )
    return answer
