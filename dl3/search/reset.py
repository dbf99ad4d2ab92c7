"""Reset (RFC 2544, 26.6, RFC 6201): how long a device forwards nothing, and how long a trial must be to observe it."""

from collections.abc import Callable
from typing import TypeVar

from dl3.search.throughput import Undecided

T = TypeVar("T")
MARGIN_S = 0.1  # lossless time required at the end of the trial


def is_back(last_lost_s: float | None, whole_s: float) -> bool:
    """Whether the device was forwarding again before the end."""
    return last_lost_s is None or last_lost_s < whole_s - MARGIN_S


def trial_that_ends_well(
    measure: Callable[[float], T], is_good: Callable[[T], bool], seconds: float, most_s: float
) -> T:
    """The first trial in which the device recovered. Each trial is twice as long as the last, at most `most_s`."""
    while True:
        trial = measure(seconds)
        if is_good(trial):
            return trial
        if seconds >= most_s:
            raise Undecided(f"no result: the device did not forward again within {seconds:.0f} s: look at its log")
        seconds = min(2 * seconds, most_s)
