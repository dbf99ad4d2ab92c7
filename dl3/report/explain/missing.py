"""Which evidence of a trial with loss the machine did not give. Pure."""

import re
from collections.abc import Iterator

from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding
from dl3.report.places import RESET, places_of

# As dl3/trial/seen.py has it; its clock is the machine's, which no reader knows.
FORGOTTEN = re.compile(r"pauses from before (\d+) ns are missing")


def missing_findings(trial: Trial) -> Iterator[Finding]:
    """A finding for each kind; none where a reset on purpose explains all that was lost."""
    if not trial.evidence or not places_of(trial).keys() - {RESET}:
        return
    for text in trial.evidence.missing:
        yield Finding("missing", "missing", {"sentence": since_start(text, trial)})


def since_start(text: str, trial: Trial) -> str:
    """The sentence with its time told from the trial's start."""
    if not trial.timeline:
        return text
    start_ns = trial.timeline.start_ns
    return FORGOTTEN.sub(
        lambda found: f"pauses of the first {(int(found[1]) - start_ns) / 1e9:.3f} s are missing", text
    )
