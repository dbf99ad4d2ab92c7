"""dl3d is started with one of its own allocations failing: it says so in a sentence and exits with status 1, or runs.

Each start needs a second or two, and there are some dozens of allocations, so that trying all of them is a long test.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.plugins import DEVICES
from harness.wired import DL3D

from dl3.lab.namespace import Lab

CONFIG = """\
ports: [{name: a, device: net_null0, addresses: [10.0.1.1/24]}, {name: b, device: net_null1}]
control: {socket: SOCKET}
memory: {hugepages: never}
"""
STATIC = """\
routes: [10.2.0.0/16 via 10.0.1.2 dev a]
neighbours: [10.0.1.2 lladdr 02:00:00:00:01:02 dev a]
"""
PATIENCE_S = 60
MOST = 1000
STATUSES = (1, 2)  # of dl3d: a failure, or a mistake in the configuration


class Short:
    """A folder, and dl3d's configuration in it."""

    def __init__(self, folder: Path, config: str) -> None:
        self.folder = folder
        self.file = folder / "dl3d.yaml"
        self.file.write_text(config.replace("SOCKET", str(folder / "dl3d.sock")))

    def start(self, number: int) -> tuple[bool, int, str]:
        """Start dl3d, stop it once it forwards: whether allocation `number` has failed, exit status, log."""
        told, log = self.folder / "told", self.folder / "log"
        told.unlink(missing_ok=True)
        surroundings = os.environ | {
            "LD_PRELOAD": str(DEVICES / "memory_short.so"),
            "DL3_FAIL_AT": str(number),
            "DL3_FAIL_TOLD": str(told),
        }
        with log.open("w") as out:
            run = subprocess.Popen([DL3D, self.file], env=surroundings, stdout=out, stderr=out)
        try:
            status = self._stop(run, log)
        finally:
            run.kill()
            run.wait()
        return told.exists(), status, log.read_text()

    @staticmethod
    def _stop(run: subprocess.Popen[bytes], log: Path) -> int:
        until = time.monotonic() + PATIENCE_S
        while run.poll() is None and "forwarding: ports" not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.01)
        if run.poll() is None:
            run.send_signal(signal.SIGTERM)
        return run.wait(PATIENCE_S)

    def check(self, number: int) -> bool:
        """Whether allocation `number` has failed; then dl3d has said so, or forwarded without it."""
        has_failed, status, log = self.start(number)
        where = f"allocation {number}: status {status}\n{log}"
        forwarded = "forwarding: ports" in log
        assert status == 0 if forwarded else status in STATUSES, where
        errors = [line for line in log.splitlines() if "error: " in line]
        assert forwarded or (len(errors) == 1 and len(errors[0].partition("error: ")[2]) > 10), where
        assert has_failed or forwarded, where
        return has_failed


@pytest.fixture(params=["static", "linux"])
def short(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Short]:
    if request.param == "static":
        yield Short(tmp_path, CONFIG + STATIC)
        return
    with Lab() as lab:
        linux = f"linux: {{namespace: {lab.namespace('short').name}, keep: false}}\n"
        yield Short(tmp_path, CONFIG.replace(", addresses: [10.0.1.1/24]", "") + linux)


def a_start_without_memory_ends_in_a_sentence(short: Short) -> None:
    for number in (1, 4, 16, 40, 80):
        short.check(number)


@pytest.mark.long
def each_allocation_of_a_start_may_fail(short: Short) -> None:
    """Some dozens of starts."""
    number = 1  # two starts may differ by a few allocations, depending on what the threads do first
    while short.check(number):
        number += 1
    assert 20 < number < MOST
