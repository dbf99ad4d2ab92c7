"""What tests of timing do about a machine that has other things to do: go first, and know when they were left out."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

BEAT_S = 0.01
OURSELVES = "self"


@contextlib.contextmanager
def going_first(nice: Mapping[str, int]) -> Iterator[None]:
    """Sessions of processes (by pid, or OURSELVES) weigh so much; Linux weighs sessions first, then threads.

    Our own gets its weight back; the others are expected to end.
    """
    groups = {pid: Path(f"/proc/{pid}/autogroup") for pid in nice}
    present = {pid: group for pid, group in groups.items() if group.exists()}
    own = Path(f"/proc/{OURSELVES}/autogroup")
    before = own.read_text().split()[-1] if own.exists() else "0"
    try:
        for pid, group in present.items():
            group.write_text(str(nice[pid]))
        yield
    finally:
        if OURSELVES in present:
            own.write_text(before)


class Pulse:
    """A thread that wants to run every 10 ms, in a with statement; how long it once had to wait."""

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
