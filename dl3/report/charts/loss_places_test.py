"""Lost frames by location, in valid trials only."""

from harness.records import Maker, scene

from dl3.model.trial import Trial
from dl3.report.charts.loss_places import CHART
from dl3.report.texts import words_in
from dl3.report.words import Language

EN = words_in(Language.EN)


def _trial(places: dict[str, int], lost: int, **changes: object) -> Trial:
    made = Maker().trial("64", 1e6, **changes)
    return made.model_copy(update={"account": made.account.model_copy(update={"lost": lost, "lost_by_place": places})})


def _bars(trials: list[Trial]) -> dict[str, str]:
    drawing = CHART.draw(scene(trials), EN)
    found = [rect.attrib for rect in drawing.pictures[0].iter("rect")] if drawing else []
    return {bar["data-place"]: bar["data-value"] for bar in found}


def adds_up_places_the_greatest_first() -> None:
    trials = [_trial({"no_route": 3}, 3), _trial({"no_route": 1, "corrupted": 9}, 10)]
    assert list(_bars(trials).items()) == [("corrupted", "9"), ("no_route", "4")]


def counts_as_unknown_what_no_place_explains() -> None:
    assert _bars([_trial({"no_route": 3}, 10)]) == {"unknown": "7", "no_route": "3"}


def counts_no_loss_of_an_invalid_trial() -> None:
    assert _bars([_trial({"no_route": 3}, 3, invalid=("late: 9 frames",))]) == {}
