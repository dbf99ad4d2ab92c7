"""What the terminal says about the noise of results, and about trials that stalls of the generator affected."""

from collections.abc import Iterator, Sequence

from dl3.model.results import Result
from dl3.model.trial import Throughput, Trial
from dl3.report.stalls import stall_texts
from dl3.report.texts import words_in
from dl3.report.words import Language

OF_STALLS = ("stalls: ", "stall cost: ")


def remarks(found: Sequence[object]) -> Iterator[str]:
    """One line per result or latency trial and reason."""
    words = words_in(Language.EN)
    for one in found:
        if isinstance(one, Result | Throughput):
            yield from (f"frames of {one.frame}: noisy, {reason}" for reason in one.noise)
        elif isinstance(one, Trial):
            yield from (f"frames of {one.frame}, {one.load or 0:.0%}: {text}" for text in stall_texts(one, words))


def stalls_in_short(found: Sequence[object]) -> str:
    """What stalls did to the results of a job, as the end of its line; empty if nothing."""
    reasons = [reason for one in found for reason in getattr(one, "noise", ()) if reason.startswith(OF_STALLS)]
    return "".join(f"; {reason}" for reason in dict.fromkeys(reasons))
