"""The demo cleans up, whenever it is interrupted."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from harness.wired import TOP

from dl3.host.hugepages import NUMBER, read_number

pytestmark = pytest.mark.alone  # huge pages: an interrupted demo returns what it took

DEMO = TOP / "tools" / "demo"
START_SECONDS = 60.0
HANGS_SECONDS = 300.0
ENV = dict(os.environ) | {"PYTHONFAULTHANDLER": "1"}


def _moments(soon: float, late: float) -> list[ParameterSet]:
    """When, in seconds, and how: each signal and each of the early moments once, and in the long tests all of them."""
    short = [(0.0, signal.SIGTERM), (soon, signal.SIGINT)]
    long = [(0.0, signal.SIGINT), (soon, signal.SIGTERM), (late, signal.SIGINT), (late, signal.SIGTERM)]
    return [pytest.param(*row) for row in short] + [pytest.param(*row, marks=pytest.mark.long) for row in long]


def _namespaces(pid: int) -> list[str]:
    return [path.name for path in Path("/run/netns").glob(f"dl3-{pid}-*")]


def _children(group: int) -> list[str]:
    # A zombie has ended; process 1 may be slow to reap it.
    done = subprocess.run(["ps", "-o", "stat=,args=", "-s", str(group)], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("Z")]


def _wait_for(demo: subprocess.Popen[str], has_begun: Callable[[], object]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not has_begun():
        assert demo.poll() is None, demo.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _words_of(demo: subprocess.Popen[str]) -> str:
    """Its error output, once it has ended; if it hangs, the place where it does."""
    try:
        return demo.communicate(timeout=HANGS_SECONDS)[1]
    except subprocess.TimeoutExpired:
        demo.send_signal(signal.SIGABRT)
        raise AssertionError(demo.communicate()[1]) from None


@pytest.mark.parametrize(("seconds", "how"), _moments(0.5, 2.5))
def an_interrupted_demo_leaves_nothing_behind(seconds: float, how: signal.Signals) -> None:
    demo = subprocess.Popen(
        [DEMO], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, env=ENV
    )
    _wait_for(demo, lambda: _namespaces(demo.pid))
    time.sleep(seconds)
    os.killpg(demo.pid, how)
    words = _words_of(demo)
    assert demo.returncode == 130, words
    assert words.splitlines()[-1] == "demo: interrupted; everything was removed"
    assert _namespaces(demo.pid) == []
    assert _children(demo.pid) == []


def _programs_in(folder: str) -> list[str]:
    done = subprocess.run(["pgrep", "-f", f"{folder}/dl3"], capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(("seconds", "how"), _moments(0.3, 2.0))
def an_interrupted_measurement_leaves_nothing_behind(seconds: float, how: signal.Signals) -> None:
    pages = read_number(NUMBER)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:  # a short path, because it will contain sockets
        demo = subprocess.Popen(
            [DEMO, "generator"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=ENV | {"TMPDIR": folder},
        )
        _wait_for(demo, lambda: any(Path(folder).iterdir()))
        time.sleep(seconds)
        os.killpg(demo.pid, how)
        os.killpg(demo.pid, how)
        words = _words_of(demo)
        assert demo.returncode == 130, words
        assert words.splitlines()[-1] == "demo: interrupted; everything was removed"
        assert _programs_in(folder) == []
        assert list(Path(folder).iterdir()) == []
    assert read_number(NUMBER) <= pages


def _takes_sigterm(pid: int) -> bool:
    words = Path(f"/proc/{pid}/status").read_text(encoding="ascii").split("SigCgt:")[1].split()
    return bool(int(words[0], 16) >> signal.SIGTERM - 1 & 1)


def an_interrupted_start_is_reported() -> None:
    demo = subprocess.Popen([DEMO, "generator"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)
    _wait_for(demo, lambda: _takes_sigterm(demo.pid))
    demo.send_signal(signal.SIGTERM)
    words = _words_of(demo)
    assert demo.returncode == 130, words
    assert words.splitlines()[-1].startswith("demo: interrupted")
