"""Gaps on real cores: an injected program is found, sized and named."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from dl3.host.jitter.gaps import CoreGap, Jitter
from dl3.host.jitter.measure import measure
from dl3.model.fault import Fault

USABLE = sorted(os.sched_getaffinity(0))
CORE = USABLE[-1]
HOG_US = 500
SECONDS = 3.0
LONGEST_S = 60.0
# Takes the core every 20 ms, and prints when it had it, and how long the time before: waking up and printing are part
# of that.
HOG = f"""
import os, sys, time
os.sched_setaffinity(0, {{int(sys.argv[1])}})
open('/proc/self/comm', 'w').write('hog')
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    os.nice(-20)
print('ready', flush=True)
spent, before = 0, time.thread_time_ns()
while True:
    time.sleep(0.02)
    begun = time.monotonic_ns()
    while time.monotonic_ns() - begun < {HOG_US * 1000}:
        pass
    print(begun, time.monotonic_ns(), spent, flush=True)
    now = time.thread_time_ns()
    spent, before = now - before, now
"""


@contextmanager
def _hog(core: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", HOG, str(core)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert select.select([process.stdout], [], [], LONGEST_S)[0]
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def _measured_with_hog() -> tuple[Jitter, list[tuple[float, float]]]:
    """The measurement, and when and for how many us the hog had the core meanwhile."""
    with _hog(CORE) as hog:
        jitter = measure(USABLE[-2:], SECONDS, 5.0)
        hog.kill()
        lines = hog.communicate()[0].splitlines()
    rows = [[int(word) for word in line.split()] for line in lines if line.count(" ") == 2]
    return jitter, [((row[0] + row[1]) / 2, after[2] / 1000) for row, after in pairwise(rows)]


def _gap_around(gaps: tuple[CoreGap, ...], at_ns: float) -> CoreGap | None:
    return next((gap for gap in gaps if gap.at_ns - gap.us * 1000 <= at_ns <= gap.at_ns), None)


@pytest.mark.timing
def an_injected_hog_is_found_sized_and_named() -> None:
    """Tolerates 1 in 10, and leaves out times at which a third program had the core just before or after the hog."""
    assert os.geteuid() == 0, "only root may read the trace ring"
    jitter, bursts = _measured_with_hog()
    gaps = {one.core: one.gaps for one in jitter.cores}
    first, last = gaps[CORE][0].at_ns, gaps[CORE][-1].at_ns
    judged, right = 0, 0
    for at_ns, us in bursts:
        if not first < at_ns < last:
            continue  # before or after the measurement
        gap = _gap_around(gaps[CORE], at_ns)
        if gap and gap.kind == "switch" and gap.cause != "hog":
            continue
        judged += 1
        right += gap is not None and gap.cause == "hog" and abs(gap.us - us) <= 0.2 * us
    assert judged >= 10, (judged, len(bursts))
    assert right >= 0.9 * judged, (right, judged)
    if len(USABLE) > 1:
        assert "hog" not in {gap.cause for gap in gaps[USABLE[-2]]}, "the control core"


def a_core_that_may_not_be_used_is_a_sentence() -> None:
    with pytest.raises(Fault, match=r"cannot measure on core 4095 \(.*Invalid argument.*\): choose cores"):
        measure([4095], 0.1, 5.0)


def _spinners() -> list[str]:
    """Processes of ours that spin, or wait for it."""
    found = []
    for pid in subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split():
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            continue
    return [one for one in found if "spin.py" in one]


def leaves_no_process_behind() -> None:
    jitter = measure([CORE], 0.1, 5.0)
    assert jitter.cores[0].seconds >= 0.1
    assert _spinners() == []
