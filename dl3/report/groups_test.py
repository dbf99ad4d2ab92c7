"""From a figure to the lines of its trials."""

from harness.campaigns import every_test
from harness.records import Maker, campaign

from dl3.report.groups import Groups, span
from dl3.report.results import gather


def leads_from_a_result_to_all_trials_of_its_question() -> None:
    maker = Maker()
    trials = [maker.trial("64", 1e6), maker.trial("64", 2e6), maker.trial("64", 1e6, test="latency", load=0.5)]
    results = gather([*trials, maker.result("64", 1e6)], ["3", "4", "5", "6"])
    groups = Groups(results)
    assert groups.lines(results.searches[0]) == "3–4"
    assert groups.link(results.searches[0]) == "#G1"
    assert groups.link(trials[2]) == "#L5"


def names_the_result_itself_where_its_trials_are_not_recorded() -> None:
    results = gather([Maker().result("64", 1e6)], ["2:9"])
    assert Groups(results).lines(results.searches[0]) == "2:9"
    assert Groups(results).link(results.searches[0]) is None


def finds_the_line_of_every_record() -> None:
    results = gather(every_test(Maker(), campaign(Maker())))
    assert all(results.line(record) for record in results.records)


def orders_lines_as_numbers() -> None:
    assert span(["10", "9", "11"]) == "9–11"
    assert span(["2:100", "2:7"]) == "2:7, 2:100"
    assert span(["2:7"]) == "2:7"


def names_no_line_that_holds_another_trial() -> None:
    assert span(["3", "4", "7", "9", "10"]) == "3–4, 7, 9–10"
    assert span(["1:3", "1:5", "1:7", "1:9"]) == "1:3–9 (4)"
