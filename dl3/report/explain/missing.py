"""Evidence that the machine could not provide for a trial with loss. Pure."""

import re
from collections.abc import Iterator

from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding
from dl3.report.places import RESET, places_of

# The format of dl3/trial/seen.py; its clock is the machine's, which means nothing to a reader.
FORGOTTEN = re.compile(r"stalls before (\d+) ns are missing")


def missing_findings(trial: Trial) -> Iterator[Finding]:
    """One finding for each kind; none if a deliberate reset explains all loss."""
    if not trial.evidence or not places_of(trial).keys() - {RESET}:
        return
    for text in trial.evidence.missing:
        yield Finding("missing", "missing", {"sentence": since_start(text, trial)})


def since_start(text: str, trial: Trial) -> str:
    """The sentence with its time relative to the start of the trial."""
    if not trial.timeline:
        return text
    start_ns = trial.timeline.start_ns
    return FORGOTTEN.sub(
        lambda found: f"stalls of the first {(int(found[1]) - start_ns) / 1e9:.3f} s are missing", text
    )
