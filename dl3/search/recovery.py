"""System recovery (RFC 2544, 26.5): time from the load reduction to the last lost frame."""

from dl3.search.throughput import Undecided

OVERLOAD = 1.1  # fraction of the throughput
RELIEF = 0.5
SETTLED_S = 0.1  # lossless time required at the end of the trial, otherwise the device has not recovered


def recovery_s(last_lost_s: float | None, overload_s: float, whole_s: float) -> float:
    """Seconds from the load reduction, `overload_s` after the start, to the due time of the last lost frame.

    `last_lost_s` is that due time relative to the start, or None without loss. Returns 0 if nothing was lost after the
    reduction.
    """
    if last_lost_s is None:
        raise Undecided(
            "no result: nothing was lost in the overload, so there is nothing to recover from: search its throughput "
            "again, with longer trials"
        )
    if last_lost_s > whole_s - SETTLED_S:
        raise Undecided(
            f"no result: {whole_s - overload_s:.1f} s after the overload frames were still lost: give it longer trials"
        )
    return max(0.0, last_lost_s - overload_s)
