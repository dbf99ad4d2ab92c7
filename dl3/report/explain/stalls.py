"""What stalls of the generator can have cost a trial, and that it is shorter because of them. Pure."""

from collections.abc import Iterator

from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding, Value


def stall_findings(trial: Trial) -> Iterator[Finding]:
    """The bound of a trial that counts in spite of stalls, and its length; an INVALID trial has its reason."""
    stalled = trial.stalled
    if stalled and stalled.frames and not trial.invalid:
        values: dict[str, Value] = {
            "n": stalled.n,
            "us": stalled.us,
            "longest": stalled.longest_us,
            "frames": stalled.frames,
            "share": trial.error_share,
            "who": stalled.who,
        }
        yield Finding("stalls", "stalled.by" if stalled.who else "stalled", values)
    if trial.ordered_s:
        lengths: dict[str, Value] = {"seconds": trial.seconds, "ordered": trial.ordered_s, "held": trial.held}
        yield Finding("stalls", "shortened.held" if trial.held else "shortened", lengths)
