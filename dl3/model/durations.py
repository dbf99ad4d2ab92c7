"""How long MLRsearch's trials are: a search asks for them, a plan promises them."""

import math

LONG_S = 2.0  # final trials up to that are hardly longer than what any trial costs besides
SHORTEST_S = 0.1
LONGEST_FIRST_S = 1.0
FIRST_SHARE = 0.1


def first_s(final_s: float) -> float:
    """Goal initial trial duration of RFC 9971, for final trials of so many seconds."""
    return min(final_s, max(SHORTEST_S, min(LONGEST_FIRST_S, FIRST_SHARE * final_s)))


def n_finals(trials: int, exceed: float) -> int:
    """Final trials that decide about a rate: so many at least that an exceed ratio can forgive one."""
    return max(trials, math.floor(1 / exceed) + 1 if exceed else 1)


def has_middle(final_s: float) -> bool:
    """Whether there are trials between the first and the final ones: they spare long trials, and cost short ones."""
    return final_s > LONG_S
