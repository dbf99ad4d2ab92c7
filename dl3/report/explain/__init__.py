"""Why frames of a trial were lost, with evidence; without loss, which limit comes next. Pure."""

from dl3.model.trial import Trial
from dl3.report.explain.counters import counter_findings
from dl3.report.explain.finding import Finding, plain, sentence
from dl3.report.explain.headroom import headroom_findings
from dl3.report.explain.missing import missing_findings
from dl3.report.explain.places import place_findings
from dl3.report.explain.stalls import stall_findings
from dl3.report.explain.times import starved, time_findings
from dl3.report.words import Words

__all__ = ["Finding", "explain", "findings", "plain", "sentence"]


def findings(trial: Trial) -> tuple[Finding, ...]:
    """All findings on a trial's loss or headroom; a cause is named only if the evidence supports it."""
    found = [Finding("invalid", "invalid", {"reason": reason}) for reason in trial.invalid]
    found += [*starved(trial), *stall_findings(trial)]
    if trial.account.lost > 0:
        found += [*place_findings(trial), *time_findings(trial), *counter_findings(trial)]
    elif not trial.invalid:
        found += headroom_findings(trial)
    return (*found, *missing_findings(trial))


def explain(trial: Trial, words: Words) -> list[str]:
    """The findings as sentences."""
    return [sentence(finding, words) for finding in findings(trial)]
