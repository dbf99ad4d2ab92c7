"""How many trials a result was computed from: the only place where the trials of a result are counted.

The table of results, the note on noise and the output for programs show these numbers, and the line numbers beside
them are those of the same trials.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dl3.model.trial import Throughput, interrupted
from dl3.report.groups import Groups

INTERRUPTED = re.compile(r"(?P<before>interrupted: )[\d,]+ of [\d,]+(?P<after> trials .*)")  # dl3/bench/stability.py


@dataclass(frozen=True)
class Tally:
    """Trials of a result."""

    n: int
    n_invalid: int = 0
    n_interrupted: int = 0  # INVALID although the generator reached their rate in others


def tally(search: Throughput, groups: Groups) -> Tally:
    """The recorded trials of a search, for all of its goals; without any, the numbers that its result contains."""
    group = groups.of(search)
    if group is None:
        return Tally(search.n_trials, search.n_invalid)
    trials = group.trials
    return Tally(len(trials), sum(1 for trial in trials if trial.invalid), len(interrupted(trials)))


def recount(search: Throughput, groups: Groups) -> Sequence[str]:
    """The reasons why the machine was noisy, with the numbers of this tally.

    A search that was repeated has such a sentence for each time, with the trials of that time only.
    """
    found = tally(search, groups)
    if not found.n_interrupted:
        return search.noise
    numbers = rf"\g<before>{found.n_interrupted:,} of {found.n:,}\g<after>"
    return list(dict.fromkeys(INTERRUPTED.sub(numbers, reason) for reason in search.noise))
