"""Either both machines are observed, or none."""

import json

import pytest

from dl3.bench.far import Clock, FarWatch
from dl3.control.remote import Machine
from dl3.host.watching import MachineWatch
from dl3.model.fault import Fault
from dl3.trial.fake import FakeForwarder

NAME = "dl3-1-9-0"


class Script:
    """Stands in for watch.py; records the methods called and fails on some."""

    def __init__(self, error: BaseException | None = None, fails_at: str = "") -> None:
        self.reported: list[str] = []
        self.error, self.fails_at = error, fails_at

    def __call__(self, _source: str, method: str, *_words: str) -> str:
        self.reported.append(method)
        if self.error and method == self.fails_at:
            raise self.error
        return json.dumps({"ring": NAME})


def watched(near: Script, far: Script) -> FarWatch:
    """A watch on both machines."""
    watch = FarWatch(Machine.parse("ssh://dut"), FakeForwarder(), Clock(0, 0), MachineWatch(near))
    watch.there = MachineWatch(far, owner=0)
    return watch


@pytest.mark.parametrize("error", [Fault("no root here"), KeyboardInterrupt()])
def ends_the_other_machines_watch_when_ours_does_not_begin(error: BaseException) -> None:
    far = Script()
    with pytest.raises(type(error)):
        watched(Script(error, "begin"), far).start([0], {})
    assert far.reported == ["begin", "end"]


def ends_the_other_machines_watch_when_ours_is_interrupted_at_its_end() -> None:
    far = Script()
    watch = watched(Script(KeyboardInterrupt(), "end"), far)
    watch.start([0], {})
    with pytest.raises(KeyboardInterrupt):
        watch.stop()
    assert far.reported == ["begin", "end"]
