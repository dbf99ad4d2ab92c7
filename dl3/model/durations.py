"""Trial durations of MLRsearch, used by the search and by the time plan."""

import math

LONG_S = 2.0  # up to this duration the fixed cost of a trial dominates
SHORTEST_S = 0.1
LONGEST_FIRST_S = 1.0
FIRST_SHARE = 0.1


def first_s(final_s: float) -> float:
    """Goal initial trial duration of RFC 9971 for final trials of this duration."""
    return min(final_s, max(SHORTEST_S, min(LONGEST_FIRST_S, FIRST_SHARE * final_s)))


def n_finals(trials: int, exceed: float) -> int:
    """Number of final trials per rate: at least enough for the exceed ratio to tolerate one bad trial."""
    return max(trials, math.floor(1 / exceed) + 1 if exceed else 1)


def has_middle(final_s: float) -> bool:
    """Whether trials of intermediate duration are run: they save long trials, at the cost of some short ones."""
    return final_s > LONG_S
