"""Conducts the frame loss rate test (RFC 2544, 26.3)."""

from collections.abc import Sequence

from dl3.bench.loads import RETRIES, Loads, told_of
from dl3.bench.stage import Most, Stage, head_of
from dl3.model.answers import FrameLoss
from dl3.search.frame_loss import find_losses


def measure_frame_loss(stage: Stage) -> Sequence[FrameLoss]:
    """Loss over load, from the line's or the tester's most down until two loads in a row lost nothing."""
    course, effort, frame = stage.course, stage.job.effort, stage.job.frame
    most = Most.of(course, frame)
    found = find_losses(Loads(course, frame, "frame loss", most, effort.step).at, effort.step, RETRIES)
    answer = FrameLoss(**head_of(stage, most.ceiling), **told_of(found), trial_seconds=course.seconds)
    course.keep(answer)
    return (answer,)
