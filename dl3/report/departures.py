"""Deviations from the RFCs of measurements without a plan, derived from the records themselves."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from dl3.model.campaign import Effort, TestName, Text
from dl3.model.deviations import beside_time, deviations, of_times
from dl3.model.results import BackToBack
from dl3.report.markup import tag
from dl3.report.plan_tables import said
from dl3.report.results import Results
from dl3.report.words import Words

TIMED: tuple[TestName, ...] = ("latency", "frame loss", "back-to-back", "recovery", "reset", "forwarding")
ENOUGH = 1e9  # seconds; more than any RFC asks for


def of_searches(results: Results) -> Iterable[Text]:
    """Deviations of throughput searches."""
    yield from of_times([one.trial_seconds for one in results.searches], "throughput")
    goals = tuple(dict.fromkeys(one.goal_loss_ratio for one in results.searches))
    exceed = max((one.exceed_ratio for one in results.searches), default=0.0)
    yield from beside_time(Effort(goals=goals, exceed=exceed), "throughput")


def of_others(results: Results) -> Iterable[Text]:
    """Deviations of all other tests, by their shortest trials."""
    bursts = [len(one.bursts) for one in results.others if isinstance(one, BackToBack)]
    for test in TIMED:
        seconds = [trial.seconds for trial in results.valid if trial.test == test]
        if test == "back-to-back" and bursts:
            yield from deviations(Effort(seconds=max(seconds, default=ENOUGH), repetitions=min(bursts)), test)
        elif seconds:
            yield from deviations(Effort(seconds=round(min(seconds), 3)), test)


def departures(results: Results, words: Words) -> list[Element]:
    """One sentence each; none if plans already list them."""
    if results.plans:
        return []
    texts = dict.fromkeys(said(text, words) for text in (*of_searches(results), *of_others(results)))
    if not texts:
        return []
    return [tag("h3", words("plan.deviations")), tag("ul", *(tag("li", text) for text in texts), class_="plain")]
