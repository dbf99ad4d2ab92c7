"""How the plan of a campaign is shown once there are results."""

import pytest
from harness.campaigns import white_paper

from dl3.model.campaign import Plan
from dl3.model.trial import Throughput
from dl3.report.departures import departures
from dl3.report.plan_tables import deviations_of, time_text
from dl3.report.results import Record, gather
from dl3.report.texts import words_in
from dl3.report.words import Language

RECORDS = white_paper()
(PLAN,) = (one for one in RECORDS if isinstance(one, Plan))


def _took(seconds: dict[int, float], usual: float) -> list[Record]:
    results = [one for one in RECORDS if isinstance(one, Throughput)]
    return [
        one.model_copy(update={"trial_seconds": seconds.get(n, usual)})
        for n, one in enumerate(results)
        if one.goal_loss_ratio == 0
    ]


def _departures(records: list[Record]) -> list[str]:
    return [text.en for text in deviations_of(PLAN, gather([PLAN, *records]))]


def takes_the_length_of_trials_from_the_results() -> None:
    planned = [text.en for text in PLAN.deviations]
    assert planned[0] == "Trials take 2 s instead of 60 s (RFC 2544, 24)."
    assert _departures(_took({0: 1.18, 2: 1.08}, 0.26)) == [
        "Trials take 0.26 to 1.18 s instead of 60 s (RFC 2544, 24).",
        *planned[1:],
    ]
    assert _departures(_took({}, 60.0)) == planned[1:]


def keeps_what_was_planned_where_nothing_has_a_result() -> None:
    assert _departures([]) == [text.en for text in PLAN.deviations]


def reports_searches_without_a_plan_from_the_shortest_to_the_longest() -> None:
    results = _took({0: 1.5}, 0.5)
    printed = "".join(text for piece in departures(gather(results), words_in(Language.EN)) for text in piece.itertext())
    assert printed.count("Trials take") == 1
    assert "Trials take 0.5 to 1.5 s instead of 60 s" in printed


BEGUN = "2026-11-22T10:00:00+00:00"
ALL = " Started at 2026-11-22 10:00:00, last result at 2026-11-22 10:09:03 UTC: 9 min 3 s in total."


@pytest.mark.parametrize(
    ("begun", "ended", "budget_s", "text"),
    [
        (BEGUN, "2026-11-22T10:09:03+00:00", 480.0, "planned for a time budget of 8 min 0 s." + ALL),
        (BEGUN, "soon", 480.0, "planned for a time budget of 8 min 0 s."),
        ("2026-11-22T10:00:00", "2026-11-22T10:09:03+00:00", 0.0, "planned to take 1 min 5 s."),
        (BEGUN, "2026-11-22T09:00:00+00:00", 0.0, "planned to take 1 min 5 s."),
    ],
)
def reports_the_time_that_was_given_and_that_was_taken(begun: str, ended: str, budget_s: float, text: str) -> None:
    plan = PLAN.model_copy(update={"campaign": begun, "budget_seconds": budget_s, "seconds": 65.0})
    result = next(one for one in RECORDS if isinstance(one, Throughput) and one.goal_loss_ratio == 0)
    records = [result.model_copy(update={"campaign": begun, "at": ended})]
    words = words_in(Language.EN)
    assert time_text(plan, gather([plan, *records]), words) == f"{PLAN.title.en}: {text}"
    assert time_text(plan, gather([plan]), words) == f"{PLAN.title.en}: {text}".partition(" Started")[0]


def reports_searches_that_tolerated_trials() -> None:
    results = [one.model_copy(update={"exceed_ratio": 0.5}) for one in _took({}, 60.0)]
    printed = "".join(text for piece in departures(gather(results), words_in(Language.EN)) for text in piece.itertext())
    assert "Up to 50 % of the trial time at a rate may lose more than its goal" in printed
