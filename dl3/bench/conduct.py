"""Runs one job: its test, on an open testbed, with the results of earlier jobs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dl3.bench.back_to_back import measure_back_to_back
from dl3.bench.forwarding import measure_forwarding
from dl3.bench.frame_loss import measure_frame_loss
from dl3.bench.known import Known
from dl3.bench.latency import measure_latency
from dl3.bench.recovery import measure_recovery
from dl3.bench.reset import measure_reset
from dl3.bench.site import Run
from dl3.bench.testbed import Testbed, throughput_of, throughputs_of
from dl3.dut.bed import Bed
from dl3.model.campaign import Job
from dl3.model.fault import Fault
from dl3.model.noun import Noun


def throughput(testbed: Testbed) -> Sequence[Noun]:
    """RFC 2544, 26.1, or RFC 9971: one result per goal."""
    return throughputs_of(testbed)


def latency(testbed: Testbed) -> Sequence[Noun]:
    """RFC 2544, 26.2, at the job's fractions of the throughput; the trials are the result."""
    return measure_latency(testbed.run, [throughput_of(testbed)], testbed.job.effort.loads)


TESTS: Mapping[str, Callable[[Testbed], Sequence[Noun]]] = {
    "throughput": throughput,
    "latency": latency,
    "frame loss": measure_frame_loss,
    "back-to-back": measure_back_to_back,
    "recovery": measure_recovery,
    "reset": measure_reset,
    "forwarding": measure_forwarding,
}


def conduct(run: Run, job: Job, bed: Bed | None, known: Known) -> Sequence[Noun]:
    """Run the job's trials and return its results, which are then recorded; Fault if there are none.

    The streams are those of the run; `bed` is None if the device cannot be reset from here.
    """
    made = TESTS.get(job.test)
    if not made:
        raise Fault(f"unknown test '{job.test}': expected one of {', '.join(TESTS)}")
    return made(Testbed(replace(run, seconds=job.effort.seconds, job=job.key), job, bed, known))
