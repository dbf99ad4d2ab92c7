"""A core that another thread takes for 10 ms five times a second: the figures are those of an undisturbed core."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.answers import AS_DUE, CORES, THERE, Bench, stream
from harness.busy import busy

from dl3.bench.compare import Contest, Side, measured
from dl3.bench.site import Run
from dl3.bench.throughput import Wanted, find
from dl3.control.client import Client
from dl3.model.stream import Stream
from dl3.record.reader import read
from dl3.search.throughput import SearchSettings
from dl3.trial.order import Site
from dl3.trial.run import Runner

LIMIT_PPS = 100_000
CHANNEL = f"{THERE} limit_pps={LIMIT_PPS} limit_depth=8 {AS_DUE} ring=16384 slot=128"
# The first argument is the core. Real-time threads have priority over all others, but some control groups forbid them.
TAKER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
print(flush=True)
while True:
    end_s = time.monotonic() + 0.01
    while time.monotonic() < end_s:
        pass
    time.sleep(0.19)
"""


class AlwaysThere:
    """A device of a comparison that need not be suspended."""

    def freeze(self) -> None:
        """It has its core."""

    def thaw(self) -> None:
        """It has its core."""


def _run(bench: Bench, folder: Path, name: str) -> Run:
    runner = Runner(Site(Client(bench.dl3gen.socket), dut_name="test device"))
    return Run(runner, (Stream.model_validate(stream()),), folder / f"{name}.jsonl", seconds=1.0)


def _forwarding(run: Run) -> float:
    return measured(Side(AlwaysThere(), run), "64", Contest(("64",), run.record)).pps  # type: ignore[arg-type]


def _throughput(run: Run) -> float:
    wanted = Wanted(("64",), SearchSettings(resolution=0.005), max_pps=2 * LIMIT_PPS, method="binary")
    return find(run, wanted, "64", 0.0)[0].result.pps


@pytest.mark.timing
@pytest.mark.long
@pytest.mark.parametrize("measure", [_forwarding, _throughput])
def a_rate_beside_stalls_of_10_ms_is_that_without_them_within_2_percent(
    tmp_path: Path, measure: Callable[[Run], float]
) -> None:
    assert os.geteuid() == 0, "only root may take a core at will"
    with Bench(tmp_path, [CHANNEL], measures=True) as bench:
        quiet_pps = measure(_run(bench, tmp_path, "quiet"))
        with busy(CORES[-1], TAKER):
            beside_pps = measure(_run(bench, tmp_path, "beside"))
    assert beside_pps == pytest.approx(quiet_pps, rel=0.02)
    trials = read(tmp_path / "beside.jsonl").trials
    assert any(trial.is_stalled for trial in trials), "the core was not taken"
    assert any(trial.ordered_s and not trial.invalid for trial in trials)
