"""Packets of routing protocols while another process wants the whole core of the TAP thread, beside the same in the plain kernel."""

import os
import random
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.busy import busy
from harness.frames import IP, TCP, on
from harness.wire import Wire
from harness.wired import DL3D, Port, WiredForwarder, host_mac, port_mac

from dl3.lab.namespace import End

CORES = sorted(os.sched_getaffinity(0))
N, N_SOME, N_FEW = 10_000, 1_000, 100
LATE_S = 0.02
MORE = N // 10_000  # late answers more than the kernel's: 99.99 % are in time
LONGEST_PAUSE_S = 0.006  # between two packets: the TAP thread sleeps after 2 ms
PATIENCE_S = 60.0
RUNAWAY_US = 200_000
REFUSED = "Linux refuses real-time priority"
# More weight than any other process, as a control group or another session may have.
HOG = (
    "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nos.setpriority(os.PRIO_PROCESS, 0, -20)\n"
    "print(flush=True)\nwhile True: pass"
)
TAP_MAC = port_mac(0)
KERNEL_MAC, CLIENT_MAC = "02:00:00:00:02:01", "02:00:00:00:02:02"


def _router(program: Path = DL3D) -> WiredForwarder:
    """A router whose worker and TAP thread have a core each, if there are two."""
    made = WiredForwarder([Port("a"), Port("b")], linux={}, workers=[{"core": CORES[0]}], program=program)
    made.dl3d.taps.ip("address", "add", "10.0.1.1/24", "dev", "a")
    made.dl3d.taps.ip("neigh", "add", "10.0.1.2", "lladdr", host_mac(0), "dev", "a")
    return made


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    """A router with the priority that this control group permits."""
    with _router() as made:
        yield made


@pytest.fixture
def ordinary(tmp_path: Path) -> Iterator[WiredForwarder]:
    """A router without CAP_SYS_NICE."""
    program = tmp_path / "dl3d"
    program.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_nice {shlex.quote(str(DL3D))} "$@"\n')
    program.chmod(0o755)
    with _router(program) as made:
        yield made


@pytest.fixture
def may_be_real_time() -> None:
    """Skip where nothing can have real-time priority."""
    assert len(CORES) > 1, "the worker and the TAP thread need a core each"
    if not _may_be_real_time():
        pytest.skip("this control group has no real-time runtime: the TAP thread has only more weight than others")


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


def _threads(wired: WiredForwarder) -> dict[str, int]:
    """Thread ids by name."""
    tasks = Path(f"/proc/{wired.dl3d.process.pid}/task").iterdir()
    return {(task / "comm").read_text().strip(): int(task.name) for task in tasks}


def _policy(thread: int) -> tuple[int, int, int]:
    """Policy, real-time priority and nice value."""
    policy = os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK
    return policy, os.sched_getparam(thread).sched_priority, os.getpriority(os.PRIO_PROCESS, thread)


def _policies(wired: WiredForwarder) -> dict[str, tuple[int, int, int]]:
    return {name: _policy(thread) for name, thread in _threads(wired).items()}


def only_the_tap_thread_has_real_time_priority(wired: WiredForwarder) -> None:
    policies = _policies(wired)
    may = _may_be_real_time()
    assert policies.pop("dl3d-taps") == ((os.SCHED_RR, 1, -10) if may else (os.SCHED_OTHER, 0, -10))
    assert policies.pop("dl3d") == (os.SCHED_OTHER, 0, -10)
    assert set(policies.values()) == {(os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0))}
    assert resource.prlimit(wired.dl3d.process.pid, resource.RLIMIT_RTTIME)[0] == RUNAWAY_US
    assert wired.dl3d.stderr.count(REFUSED) == (not may)


def a_refused_priority_is_reported_once_and_packets_pass(ordinary: WiredForwarder) -> None:
    for _ in range(N_FEW):
        _answer_s(ordinary.wires["a"], _syn(TAP_MAC))
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert set(_policies(ordinary).values()) == {(os.SCHED_OTHER, 0, ours)}
    assert ordinary.dl3d.stderr.count(REFUSED) == 1
    assert f"nice {ours} is used instead" in ordinary.dl3d.stderr


def _waited_s(*threads: int) -> float:
    """How long threads have been ready to run while others had their core, as Linux counts it."""
    return sum(int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]) for thread in threads) / 1e9


@dataclass(frozen=True)
class _Answer:
    took_s: float
    tap_waited_s: float  # the TAP thread, for its core
    others_waited_s: float  # the worker and this test, for the core that they share

    @property
    def is_late(self) -> bool:
        """That the worker and this test share a core, maybe with others, is not held against the TAP thread."""
        return max(self.took_s - self.others_waited_s, self.tap_waited_s) > LATE_S


def _answers(wired: WiredForwarder, kernel: Wire) -> tuple[list[_Answer], list[float]]:
    """Through the TAP and from the kernel, in turn."""
    threads = _threads(wired)
    tap, others = threads["dl3d-taps"], (next(threads[name] for name in threads if "worker" in name), os.getpid())
    to_tap, to_kernel = _syn(TAP_MAC), _syn(KERNEL_MAC)
    dice = random.Random(7)
    answers, plain = [], []
    for _ in range(N):
        before = _waited_s(tap), _waited_s(*others)
        took_s = _answer_s(wired.wires["a"], to_tap)
        answers.append(_Answer(took_s, _waited_s(tap) - before[0], _waited_s(*others) - before[1]))
        plain.append(_answer_s(kernel, to_kernel))
        time.sleep(dice.uniform(0, LONGEST_PAUSE_S))
    return answers, plain


def _total_wait_s(router: WiredForwarder) -> float:
    """Of the TAP thread while packets come often enough for it to be awake for most of the time."""
    tap = _threads(router)["dl3d-taps"]
    dice = random.Random(7)
    before_s = _waited_s(tap)
    for _ in range(N_SOME):
        _answer_s(router.wires["a"], _syn(TAP_MAC))
        time.sleep(dice.uniform(0, LONGEST_PAUSE_S))
    return _waited_s(tap) - before_s


@pytest.mark.long
@pytest.mark.timing  # the hog would keep other tests off that core, too
@pytest.mark.usefixtures("may_be_real_time", "on_the_workers_core")
def the_tap_thread_waits_a_tenth_of_what_an_ordinary_one_waits(wired: WiredForwarder, ordinary: WiredForwarder) -> None:
    """Costs 12 s: at first Linux lets a thread that slept before run at once, ordinary ones too."""
    with busy(CORES[-1], HOG):
        real_time_s, ordinary_s = _total_wait_s(wired), _total_wait_s(ordinary)
    print(f"waits for the core: real-time {real_time_s:.4f} s, ordinary {ordinary_s:.4f} s")
    assert real_time_s < ordinary_s / 10


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.usefixtures("may_be_real_time", "on_the_workers_core")
def one_of_ten_thousand_more_than_in_the_kernel_is_20_ms_late(wired: WiredForwarder, kernel: Wire) -> None:
    """Costs 40 s: ten thousand packets to each of the two."""
    with busy(CORES[-1], HOG):
        answers, plain = _answers(wired, kernel)
    late, late_plain = sum(answer.is_late for answer in answers), sum(took_s > LATE_S for took_s in plain)
    print(
        f"later than {LATE_S * 1e3:.0f} ms: {late} of {N} through the TAP, {late_plain} in the kernel; longest answers"
    )
    print(f"{max(a.took_s for a in answers) * 1e3:.1f} and {max(plain) * 1e3:.1f} ms, longest waits for a core")
    print(f"{max(a.tap_waited_s for a in answers) * 1e3:.1f} ms (TAP thread), ", end="")
    print(f"{max(a.others_waited_s for a in answers) * 1e3:.1f} ms (worker and test)")
    assert late <= late_plain + MORE
