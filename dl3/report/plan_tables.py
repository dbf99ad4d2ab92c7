"""The plan: the cases with their outcomes, reductions for the budget, and deviations."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from dl3.model.campaign import Case, Plan, TestName, Text
from dl3.model.deviations import is_of_time, of_times
from dl3.model.trial import Throughput
from dl3.report.grid import Column, Row, grid
from dl3.report.groups import Groups
from dl3.report.markup import tag
from dl3.report.results import Results
from dl3.report.sentences import sentence_text
from dl3.report.units import moment, seconds_between
from dl3.report.words import Language, Words

CASES = (Column("case"), Column("title"), Column("outcome"), Column("jobs", "", True), Column("results", "", True))


def said(text: Text, words: Words) -> str:
    """A text in the report's language."""
    return sentence_text(text.zh, words) if words.language is Language.ZH else text.en


def case_anchor(case: Case) -> str:
    """The anchor of a case's section of the page."""
    return "case-" + "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in case.key)


def with_result(case: Case, results: Results) -> int:
    """How many jobs of a case have a result, or valid trials if their test has no other result."""
    keys = {one.job for one in (*results.searches, *results.others)}
    keys |= {trial.job for trial in results.latencies}
    return sum(job.key in keys for job in case.jobs)


def is_run(case: Case, results: Results) -> bool:
    """Whether a case has any result."""
    return with_result(case, results) > 0


def is_partly(case: Case, results: Results) -> bool:
    """Whether a job of a case has no result, or some of its values cannot be measured here."""
    return bool(case.left_out) or with_result(case, results) < len(case.jobs)


def settings_of(case: Case) -> int:
    """The number of combinations of device and values that it asks for."""
    made = {(job.setup.dut.name, *job.parameters.items()) for job in case.jobs}
    return len(made) + sum(not left.instead for left in case.left_out)


def outcome(case: Case, results: Results, words: Words) -> str:
    """The outcome of a case."""
    if not case.jobs:
        return said(case.reason, words) if case.reason else words("case.nothing")
    n, n_absent = with_result(case, results), len(case.left_out)
    if n == 0:
        return words("case.without_result")
    if n_absent and n == len(case.jobs):
        return words("case.partly_here", n=n_absent, all=settings_of(case))
    return words("case.partly" if is_partly(case, results) else "case.run")


def case_row(case: Case, results: Results, words: Words) -> Row:
    """One case."""
    title = tag("a", said(case.title, words), href=f"#{case_anchor(case)}")
    n_jobs, n_results = (f"{len(case.jobs):,}", f"{with_result(case, results):,}") if case.jobs else ("", "")
    return Row((case.key, title, outcome(case, results, words), n_jobs, n_results), None if case.jobs else "not-here")


def sentences(heading: str, texts: Sequence[Text], words: Words) -> list[Element]:
    """A list below its heading; nothing if it is empty."""
    if not texts:
        return []
    return [tag("h3", words(heading)), tag("ul", *(tag("li", said(text, words)) for text in texts), class_="plain")]


def span_text(seconds: float, words: Words) -> str:
    """A duration for display."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return words("span.hours", hours=hours, minutes=minutes)
    return words("span.minutes", minutes=minutes, seconds=rest) if minutes else words("span.seconds", seconds=rest)


def deviations_of(plan: Plan, results: Results) -> list[Text]:
    """The deviations of a plan; trial lengths are those of the results, since a budget shortens trials on the way."""
    own = [one for one in (*results.searches, *results.others, *results.latencies) if one.campaign == plan.campaign]
    with_result = {one.job for one in own}
    taken = {one.job: one.trial_seconds for one in own if isinstance(one, Throughput)}
    jobs = [job for case in plan.cases for job in case.jobs]
    tests = {job.test for job in jobs if job.key in with_result}
    seconds: dict[TestName, list[float]] = {}
    for job in jobs:
        if job.key in with_result or job.test not in tests:
            of_search = taken.get(job.key) if job.test == "throughput" else None
            seconds.setdefault(job.test, []).append(of_search or job.effort.seconds)
    times = [text for test, found in seconds.items() for text in of_times(found, test)]
    return [*dict.fromkeys(times), *(text for text in plan.deviations if not is_of_time(text))]


def time_text(plan: Plan, results: Results, words: Words) -> str:
    """Planned or budgeted time and actual time. A plan remade on the way only covers what was left then."""
    name, moments = said(plan.title, words), [one.at for one in results.records if one.campaign == plan.campaign]
    given_s = plan.budget_seconds or plan.seconds
    given = words("plan.budget" if plan.budget_seconds else "plan.planned", name=name, span=span_text(given_s, words))
    took_s = seconds_between(plan.campaign, max(moments, default=""))
    if took_s is None:
        return given
    begun, ended = moment(plan.campaign), moment(max(moments))
    return given + words("plan.took", begun=begun, ended=ended, span=span_text(took_s, words))


def plan_section(plan: Plan, groups: Groups, words: Words) -> list[Element]:
    """The plan of one campaign."""
    results = groups.results
    rows = [case_row(case, results, words) for case in plan.cases]
    source = tag("details", tag("summary", words("plan.source")), tag("pre", plan.source)) if plan.source else None
    pieces = [
        tag("p", time_text(plan, results, words), class_="note"),
        grid("cases", CASES, rows, words),
        *sentences("plan.deviations", deviations_of(plan, results), words),
        *sentences("plan.shortened", plan.shortened, words),
    ]
    return [*pieces, source] if source is not None else pieces
