"""Test method: the settings, the resulting trials, and the definitions of terms."""

import math
from collections.abc import Iterable
from xml.etree.ElementTree import Element

from dl3.report.markup import tag
from dl3.report.names import goal_text
from dl3.report.results import Results
from dl3.report.units import percent, significant
from dl3.report.words import Words

MEANINGS = ("size", "throughput", "latency", "invalid")


def each(values: Iterable[float]) -> list[float]:
    """The values in order, each once."""
    return sorted({value for value in values if math.isfinite(value)})


def asked(results: Results, words: Words) -> list[tuple[str, str]]:
    """The settings of the searches."""
    searches, comma = results.searches, words("list.comma")
    goals = [goal_text(ratio, words) for ratio in each(search.goal_loss_ratio for search in searches)]
    resolutions = each(search.resolution for search in searches)
    repetitions = each(search.repetitions for search in searches)
    shares = comma.join(percent(value, 3).rstrip("0").rstrip(".") for value in resolutions)
    counts = comma.join(f"{n:g}" for n in repetitions)
    return [
        ("goal", comma.join(goals)),
        ("resolution", words("method.resolution_value", percent=shares)),
        ("repetitions", words("method.repetitions_value", n=counts)),
    ]


def lengths(results: Results, words: Words) -> tuple[str, str]:
    """The requested trial lengths; if no search states them, the actual ones."""
    values = each(search.trial_seconds for search in results.searches) or each(
        trial.seconds for trial in results.trials
    )
    written = list(dict.fromkeys(significant(value) for value in values))
    shown = (
        words("fact.range", low=written[0], high=written[-1]) if len(written) > 3 else words("list.comma").join(written)
    )
    return "length", words("method.length_value", seconds=shown)


def came_to(results: Results, words: Words) -> list[tuple[str, str]]:
    """A summary of the trials."""
    valid = results.valid
    found = [
        lengths(results, words),
        ("trials", words("method.trials_value", n=f"{len(results.trials):,}", invalid=f"{len(results.invalid):,}")),
    ]
    worst = max((abs(trial.pacing_error) for trial in valid if trial.asked_pps > 0), default=None)
    if worst is not None:
        found.append(("pacing", words("method.pacing_value", percent=percent(worst, 3))))
    if valid:
        sums = {key: f"{sum(getattr(trial.account, key) for trial in valid):,}" for key in OTHER_FAULTS}
        pers = dict.fromkeys(words.name("per", trial.account.reordered_per) for trial in valid)
        found.append(("others", words("method.others_value", **sums, per=words("list.comma").join(pers))))
    return found


OTHER_FAULTS = ("duplicated", "reordered", "corrupted", "late")


def method(results: Results, words: Words) -> Element:
    """The whole list."""
    rows = asked(results, words) if results.searches else []
    rows += came_to(results, words) if results.trials or results.searches else []
    rows += [(key, words(f"method.{key}_value")) for key in MEANINGS]
    pairs = [piece for key, text in rows for piece in (tag("dt", words(f"method.{key}")), tag("dd", text))]
    return tag("dl", *pairs, id="method")
