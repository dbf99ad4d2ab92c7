"""Helpers for timing tests on a busy machine: raise the priority, and detect when the test was not scheduled."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

BEAT_S = 0.01
OURSELVES = "self"


@contextlib.contextmanager
def raised_priority(nice: Mapping[str, int]) -> Iterator[None]:
    """Give processes (by pid, or OURSELVES) priority; our own weight is restored, the others are expected to end.

    Linux weighs sessions first, then threads; a process in no session (started by init, say) has only its threads.
    """
    before = _weight(OURSELVES)
    try:
        for pid, value in nice.items():
            _weigh(pid, value)
        yield
    finally:
        if OURSELVES in nice:
            _weigh(OURSELVES, before)


def _session(pid: str) -> str:
    """The autogroup of a process' session: its name and weight, or nothing if it has none."""
    group = Path(f"/proc/{pid}/autogroup")
    return group.read_text() if group.exists() else ""


def _weight(pid: str) -> int:
    words = _session(pid).split()
    return int(words[-1]) if words else os.getpriority(os.PRIO_PROCESS, 0 if pid == OURSELVES else int(pid))


def _weigh(pid: str, nice: int) -> None:
    if _session(pid):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
        return
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)


class Pulse:
    """A thread that wants to run every 10 ms, in a with statement; reports its longest wait."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat)

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(BEAT_S):
            now = time.monotonic()
            self.longest_s, last = max(self.longest_s, now - last), now

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
