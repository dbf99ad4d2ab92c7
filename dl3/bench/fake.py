"""Shared by the tests of this package: a run with a simulated generator, and jobs."""

from pathlib import Path
from typing import Any

from dl3.bench.site import Run, streams_of
from dl3.model.campaign import DutSpec, Effort, Job, Setup, Traffic
from dl3.trial.fake import FakeGenerator
from dl3.trial.order import Site
from dl3.trial.run import Runner


def course_of(generator: FakeGenerator, folder: Path) -> Run:
    """Trials that take no time, recorded in a folder."""
    runner = Runner(Site(generator, campaign="now"), sleep=lambda _: None)
    return Run(runner, streams_of(generator, None), folder / "r.jsonl", seconds=9.0, warm_up_s=0)


def job_of(test: Any, key: str = "1|x", frame: str = "64", **effort: Any) -> Job:
    """A test of one frame size; the other arguments set the effort."""
    setup = Setup(dut=DutSpec(name="dl3d", kind="dl3d"))
    made = Effort(**{"seconds": 1.0, "method": "binary", **effort})
    return Job(key=key, case="1", parameters={}, setup=setup, traffic=Traffic(), test=test, frame=frame, effort=made)
