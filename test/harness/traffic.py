"""Numbered packets at a moderate, steady rate, and a log of where each came out."""

import struct
import threading
import time
from dataclasses import dataclass, field

from harness.wire import Wire, wait_until

NUMBER = struct.Struct("!I")
PATIENCE_S = 60.0
WINDOW = 128  # packets under way: fewer than any ring holds, so that a late thread makes none overflow


@dataclass
class Traffic:
    """Sends `frame` repeatedly with a number in its last four bytes; start and stop, then read the log.

    After WINDOW lost packets it sends no more.
    """

    source: Wire
    frame: bytes
    sinks: dict[str, Wire]
    rate_pps: float = 2000.0
    n_sent: int = 0
    came_out: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stop, self._is_sent = threading.Event(), threading.Event()
        self._sender, self._receiver = (threading.Thread(target=each) for each in (self._send, self._receive))

    def __enter__(self) -> "Traffic":
        self.came_out = {name: [] for name in self.sinks}
        for thread in (self._sender, self._receiver):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._sender.join()
        self._is_sent.set()  # only now is n_sent the number of all
        self._receiver.join()

    def go_on(self, n: int) -> None:
        """Return once `n` more packets have been sent."""
        goal = self.n_sent + n
        wait_until(lambda: self.n_sent >= goal, f"{n} more packets were sent")

    def _send(self) -> None:
        start = time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - start) * self.rate_pps)
            while self.n_sent < due and self.n_sent - self._n_out() < WINDOW:
                self.source.send(self.frame[: -NUMBER.size] + NUMBER.pack(self.n_sent))
                self.n_sent += 1
            time.sleep(0.001)

    def _n_out(self) -> int:
        return sum(map(len, self.came_out.values()))

    def _receive(self) -> None:
        while not self._is_sent.is_set() or time.monotonic() < self._deadline():
            for name, wire in self.sinks.items():
                self.came_out[name] += [NUMBER.unpack(frame[-NUMBER.size :])[0] for frame in wire.drain()]
            if self._is_sent.is_set() and self._n_out() >= self.n_sent:
                return
            time.sleep(0.001)

    def _deadline(self) -> float:
        """The last packets may take a minute to arrive."""
        if not hasattr(self, "_end"):
            self._end = time.monotonic() + PATIENCE_S
        return self._end

    @property
    def missing(self) -> set[int]:
        """Numbers that were sent but came out nowhere."""
        return set(range(self.n_sent)) - {number for numbers in self.came_out.values() for number in numbers}
