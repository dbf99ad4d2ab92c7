"""The trials whose loss is worth an explanation."""

from dl3.model.trial import Trial
from dl3.report.places import RESET
from dl3.report.results import Results, Series, question

N_SHOWN = 6
ON_PURPOSE = (RESET, "shaping")  # loss is what these tests ask for


def worst(results: Results) -> list[Trial]:
    """The valid trial of each device that lost most, of those with evidence if any; at most six.

    A search deliberately exceeds the throughput, so trials at a load that the device should carry come first.
    """
    lossy = [trial for trial in results.valid if trial.account.lost > 0 and trial.test not in ON_PURPOSE]
    has_evidence = [trial for trial in lossy if trial.evidence is not None or trial.timeline is not None]
    carried_pps = {question(search): search.pps for search in results.searches}

    def weight(trial: Trial) -> tuple[bool, int]:
        is_carried = trial.offered_pps <= carried_pps.get(question(trial), 0.0)
        return is_carried, trial.account.lost

    found: dict[tuple[Series, str], Trial] = {}
    for trial in sorted(has_evidence or lossy, key=weight, reverse=True):
        found.setdefault((results.series_of(trial), trial.frame), trial)
    return list(found.values())[:N_SHOWN]
