"""What dl3gen's log of arrivals says about each subscriber: rates over windows, bursts, fairness, delay. Pure."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dl3.model.fault import Fault
from dl3.model.shaping import ShapedWindow
from dl3.model.trial import Spread

# As written by dl3gen's method 'arrivals', see src/gen/arrivals.h.
RECORD = np.dtype([("at_ns", "<u8"), ("delay_ns", "<u8"), ("flow", "<u4"), ("bytes", "<u4")])
WINDOWS_S = (0.001, 0.01, 0.1, 1.0, 10.0)
LEAST_FRAMES = 10.0  # per window and subscriber on average: with fewer, a rate says nothing
SHARES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99, "p99_999": 99.999}

Columns = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def read(path: Path) -> Columns:
    """The records of a file; Fault if it is not one."""
    try:
        return np.fromfile(path, dtype=RECORD)
    except OSError as error:
        raise Fault(f"the log of arrivals {path} cannot be read: {error.strerror}") from error


def between(columns: Columns, begin_s: float, end_s: float) -> Columns:
    """What arrived in this part of the run."""
    at = columns["at_ns"]
    return columns[(at >= begin_s * 1e9) & (at < end_s * 1e9)]


def delay_of(columns: Columns) -> Spread:
    """The distribution of the delays."""
    delays = columns["delay_ns"]
    if not delays.size:
        return Spread()
    found = dict(zip(SHARES, map(float, np.percentile(delays, list(SHARES.values()))), strict=True))
    return Spread(
        n=int(delays.size), min=float(delays.min()), mean=float(delays.mean()), max=float(delays.max()), **found
    )


def jain(values: Floats) -> float:
    """The fairness index: 1 if all are equal, 1/n if one has everything, 0 if nothing came."""
    squares = float((values**2).sum()) * values.size
    return float(values.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True)
class Burst:
    """The largest excess over the rate in any interval, and when it ended."""

    bytes: float
    at_ns: float


@dataclass(frozen=True)
class Arrivals:
    """Frames by subscriber, and by time within each. `rates`: bit/s that each subscriber was given."""

    at_ns: Ints
    bytes: Ints
    subscriber: Ints
    rates: Floats
    begin_ns: float
    end_ns: float

    @classmethod
    def of(cls, parts: list[Columns], rates: Floats, begin_s: float, end_s: float) -> "Arrivals":
        """From logs in which each flow is a subscriber."""
        whole = np.concatenate([between(part, begin_s, end_s) for part in parts]) if parts else np.empty(0, RECORD)
        order = np.lexsort((whole["at_ns"], whole["flow"]))
        at, size, flow = (whole[name][order].astype(np.int64) for name in ("at_ns", "bytes", "flow"))
        return cls(at, size, flow, rates, begin_s * 1e9, end_s * 1e9)

    @property
    def edges(self) -> Ints:
        """Where each subscriber begins, and the end."""
        return np.searchsorted(self.subscriber, np.arange(self.rates.size + 1)).astype(np.int64)

    def shares(self) -> Floats:
        """The rate of each subscriber from its first frame to its last, as a fraction of what it was given; 0 if fewer
        than two frames came.
        """
        edges, total = self.edges, np.concatenate(([0], np.cumsum(self.bytes)))
        found = np.zeros(self.rates.size)
        has_two = np.flatnonzero(np.diff(edges) >= 2)
        first, last = edges[has_two], edges[has_two + 1] - 1
        ns = np.maximum(self.at_ns[last] - self.at_ns[first], 1)
        found[has_two] = (total[last + 1] - total[first + 1]) * 8e9 / ns / self.rates[has_two]
        return found

    def burst(self) -> Burst:
        """Of the subscriber that has the largest one.

        A subscriber has sent u bytes more than its rate before a frame, and v with it: what it sent between two frames,
        above its rate, is v of the second less u of the first.
        """
        if not self.at_ns.size:
            return Burst(0.0, 0.0)
        edges = self.edges[self.subscriber]
        total = np.cumsum(self.bytes)
        before = total - self.bytes
        own = before - before[edges]
        allowed = (self.at_ns - self.at_ns[edges]) * self.rates[self.subscriber] / 8e9
        u = own - allowed
        apart = 2 * (float(u.max()) - float(u.min()) + 1)  # so that the least one of a subscriber is its own
        lift = apart * self.subscriber
        least = np.minimum.accumulate(u - lift) + lift
        excess = u + self.bytes - least
        largest = int(excess.argmax())
        return Burst(float(excess[largest]), float(self.at_ns[largest]))

    def windows(self) -> tuple[ShapedWindow, ...]:
        """The lowest and the highest rate over windows of each length in which enough frames come."""
        if not self.at_ns.size:
            return ()
        mean = float(self.bytes.mean())
        frames = float(self.rates.min()) / 8 / mean  # per second
        usable = [one for one in WINDOWS_S if one * 1e9 <= self.end_ns - self.begin_ns and one * frames >= LEAST_FRAMES]
        return tuple(self.window(seconds) for seconds in usable)

    def window(self, seconds: float) -> ShapedWindow:
        """Complete windows, one after the other from the begin on."""
        number = int((self.end_ns - self.begin_ns) // (seconds * 1e9))
        at = ((self.at_ns - self.begin_ns) // (seconds * 1e9)).astype(np.int64)
        inside = at < number
        keys = self.subscriber[inside] * number + at[inside]
        starts = np.flatnonzero(np.concatenate(([True], np.diff(keys) != 0))) if keys.size else np.empty(0, np.int64)
        if not starts.size:
            return ShapedWindow(seconds=seconds, low=0.0, high=0.0)
        sums = np.add.reduceat(self.bytes[inside], starts)
        shares = sums * 8 / seconds / self.rates[self.subscriber[inside][starts]]
        has_all = starts.size == number * self.rates.size
        return ShapedWindow(seconds=seconds, low=float(shares.min()) if has_all else 0.0, high=float(shares.max()))
