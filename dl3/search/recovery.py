"""System recovery (RFC 2544, 26.5): from the fall of the load to the last frame lost."""

from dl3.search.throughput import Undecided

OVERLOAD = 1.1  # of the throughput
RELIEF = 0.5
SETTLED_S = 0.1  # without loss at the end, or it has not recovered


def recovery_s(last_lost_s: float | None, overload_s: float, whole_s: float) -> float:
    """Seconds from the fall of the load, `overload_s` after its beginning, to the last lost frame's time.

    `last_lost_s` is that time, from the beginning; None where nothing was lost. 0 where nothing was lost any more.
    """
    if last_lost_s is None:
        raise Undecided(
            "no answer: nothing was lost in the overload, so there is nothing to recover from: search its throughput "
            "again, with longer trials"
        )
    if last_lost_s > whole_s - SETTLED_S:
        raise Undecided(
            f"no answer: {whole_s - overload_s:.1f} s after the overload frames were still lost: give it longer trials"
        )
    return max(0.0, last_lost_s - overload_s)
