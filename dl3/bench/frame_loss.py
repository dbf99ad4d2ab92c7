"""Runs the frame loss rate test (RFC 2544, 26.3)."""

from collections.abc import Sequence

from dl3.bench.loads import RETRIES, Loads, reported_of
from dl3.bench.testbed import Most, Testbed, head_of
from dl3.model.results import FrameLoss
from dl3.search.frame_loss import find_losses


def measure_frame_loss(testbed: Testbed) -> Sequence[FrameLoss]:
    """Loss over load, from the maximum of the line or the tester down to two lossless loads in a row, and at the rates
    that the job names.
    """
    run, effort, frame = testbed.run, testbed.job.effort, testbed.job.frame
    most = Most.of(run, frame)
    loads, given = Loads(run, frame, "frame loss", most, effort.step), [rate / most.pps for rate in effort.rates]
    found = find_losses(loads.at, effort.step, RETRIES, given)
    result = FrameLoss(**head_of(testbed, most.ceiling), **reported_of(found), trial_seconds=run.seconds)
    run.keep(result)
    return (result,)
