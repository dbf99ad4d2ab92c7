"""Packets of routing protocols while another process wants the whole core of the TAP thread, beside the same in the plain kernel."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.frames import IP, TCP, on
from harness.wire import Wire
from harness.wired import Port, WiredForwarder, host_mac

from dl3.lab.namespace import End

CORES = sorted(os.sched_getaffinity(0))
N = 10_000
LATE_S = 0.02
MORE = N // 10_000  # late answers more than the kernel's: 99.99 % are in time
LONGEST_WAIT_S = 0.006  # between two packets: the TAP thread sleeps after 2 ms
PATIENCE_S = 10.0
# More weight than any other process, as a control group or another session may have.
HOG = (
    "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nos.setpriority(os.PRIO_PROCESS, 0, -20)\n"
    "print(flush=True)\nwhile True: pass"
)
KERNEL_MAC, CLIENT_MAC = "02:00:00:00:02:01", "02:00:00:00:02:02"


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    """A router whose worker and TAP thread have a core each."""
    with WiredForwarder([Port("a"), Port("b")], linux={}, workers=[{"core": CORES[0]}]) as made:
        made.dl3d.taps.ip("address", "add", "10.0.1.1/24", "dev", "a")
        made.dl3d.taps.ip("neigh", "add", "10.0.1.2", "lladdr", host_mac(0), "dev", "a")
        yield made


@pytest.fixture
def kernel(wired: WiredForwarder) -> Iterator[Wire]:
    """A cable to a namespace with the same address."""
    plain = wired.lab.namespace("plain")
    far = End(wired.wires["a"].end.namespace, "plain", CLIENT_MAC)
    wired.lab.cable(End(plain, "a", KERNEL_MAC), far)
    plain.ip("address", "add", "10.0.1.1/24", "dev", "a")
    plain.ip("neigh", "add", "10.0.1.2", "lladdr", CLIENT_MAC, "dev", "a")
    wire = Wire(far)
    yield wire
    wire.close()


@pytest.fixture
def on_the_workers_core() -> Iterator[None]:
    """Run on the core that the hog leaves alone."""
    os.sched_setaffinity(0, {CORES[0]})
    yield
    os.sched_setaffinity(0, CORES)


def _syn(dst: str) -> bytes:
    """A BGP connection request to a router without BGP: Linux refuses it at once."""
    return on(0, IP(src="10.0.1.2", dst="10.0.1.1") / TCP(sport=20000, dport=179, flags="S", seq=1), dst=dst)


def _answer_s(wire: Wire, frame: bytes) -> float:
    start_s = time.perf_counter()
    wire.send(frame)
    answer = wire.receive(PATIENCE_S)
    while answer is not None and answer[12:14] != b"\x08\x00":
        answer = wire.receive(PATIENCE_S)
    assert answer is not None, "no answer to a request"
    return time.perf_counter() - start_s


def _may_be_real_time() -> bool:
    """Whether this control group lets root have it; a process of its own tries."""
    attempt = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", attempt], capture_output=True).returncode == 0


def _policies(wired: WiredForwarder) -> dict[str, int]:
    tasks = Path(f"/proc/{wired.dl3d.process.pid}/task").iterdir()
    return {(task / "comm").read_text().strip(): os.sched_getscheduler(int(task.name)) for task in tasks}


def only_the_tap_thread_has_real_time_priority(wired: WiredForwarder) -> None:
    reset = os.SCHED_RESET_ON_FORK
    policies = {name: policy & ~reset for name, policy in _policies(wired).items()}
    assert policies.pop("dl3d-taps") == (os.SCHED_RR if _may_be_real_time() else os.SCHED_OTHER)
    assert set(policies.values()) == {os.SCHED_OTHER}
    assert os.getpriority(os.PRIO_PROCESS, wired.dl3d.process.pid) == -10


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.usefixtures("on_the_workers_core")
def one_of_ten_thousand_more_than_in_the_kernel_is_20_ms_late(wired: WiredForwarder, kernel: Wire) -> None:
    """Costs 40 s: ten thousand packets to each of the two."""
    assert len(CORES) > 1, "the worker and the TAP thread need a core each"
    if not _may_be_real_time():
        pytest.skip("this control group has no real-time runtime: the TAP thread has only more weight than others")
    dice = random.Random(7)
    tap: list[float] = []
    plain: list[float] = []
    to_tap, to_plain = _syn("02:00:00:00:00:01"), _syn(KERNEL_MAC)
    with subprocess.Popen(
        [sys.executable, "-c", HOG, str(CORES[-1])], stdout=subprocess.PIPE, start_new_session=True
    ) as hog:
        try:
            assert hog.stdout is not None
            hog.stdout.readline()
            for _ in range(N):
                tap.append(_answer_s(wired.wires["a"], to_tap))
                plain.append(_answer_s(kernel, to_plain))
                time.sleep(dice.uniform(0, LONGEST_WAIT_S))
        finally:
            hog.kill()
    late_tap, late_plain = (sum(wait_s > LATE_S for wait_s in found) for found in (tap, plain))
    print(f"later than {LATE_S * 1e3:.0f} ms: {late_tap} of {N} through the TAP, longest {max(tap) * 1e3:.1f} ms; ")
    print(f"{late_plain} in the kernel, longest {max(plain) * 1e3:.1f} ms")
    assert late_tap <= late_plain + MORE
