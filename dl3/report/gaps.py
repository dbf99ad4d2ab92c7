"""Points that a chart does not show although one expects them there, each with the reason."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dl3.model.campaign import Job, Plan, TestName
from dl3.model.results import OverLoads, Versus
from dl3.model.trial import Trial
from dl3.report.chart import Scene
from dl3.report.fold import grouped
from dl3.report.groups import test_of
from dl3.report.names import job_name, names_of
from dl3.report.reasons import reason_text
from dl3.report.results import Measured, Results, frames_of, question
from dl3.report.sentences import sentence_text
from dl3.report.units import percents
from dl3.report.words import Words

TESTS: dict[str, TestName] = {  # by the topic of a chart
    "throughput": "throughput",
    "latency": "latency",
    "frame_loss": "frame loss",
    "back_to_back": "back-to-back",
    "recovery": "recovery",
    "reset": "reset",
    "forwarding": "forwarding",
}
BY_HAND = 5  # parts of the key of a job without a campaign: '|dut||test|frame'
N_NAMES = 12  # in one sentence


class Gap(NamedTuple):
    """A point that is missing."""

    name: str
    reason: str


def results_of(test: str, results: Results) -> list[Measured]:
    """Everything that gives a chart of a test its points."""
    if test == "latency":
        return list(results.latencies)
    every = (one for one in (*results.searches, *results.others) if not isinstance(one, Versus))
    return [one for one in every if test_of(one) == test]


def why_invalid(trials: Sequence[Trial], words: Words) -> str:
    """Why trials without a result have none: they are INVALID, or the test was broken off."""
    invalid = [trial for trial in trials if trial.invalid]
    if not invalid or len(invalid) < len(trials):
        return words("gap.broken_off")
    return words("gap.invalid", n=len(invalid), reason=reason_text(invalid[-1].invalid[0], words))


def why_without_result(job: Job, results: Results, words: Words) -> str:
    """Why a planned job has no result."""
    for skip in results.skipped:
        if skip.job == job.key:
            return sentence_text(skip.reason, words)
    trials = [trial for trial in results.trials if trial.job == job.key and trial.test == job.test]
    if trials:
        return why_invalid(trials, words)
    return words("gap.budget" if budget_of(job, results.plans) else "gap.not_reached")


def budget_of(job: Job, plans: Iterable[Plan]) -> float:
    """The budget of the campaign of a job; 0: none."""
    found = (plan.budget_seconds for plan in plans for case in plan.cases if job in case.jobs)
    return next(found, 0.0)


def planned_gaps(test: str, scene: Scene, words: Words) -> Iterable[Gap]:
    """Jobs of a case that have no result."""
    if not scene.part.case:
        return
    results = scene.groups.results
    with_result = {one.job for one in results_of(test, scene.part.results)}
    for job in scene.part.case.jobs:
        if job.test == test and job.key not in with_result:
            yield Gap(job_name(job.key, results, words), why_without_result(job, results, words))


def loose_gaps(test: str, scene: Scene, words: Words) -> Iterable[Gap]:
    """The same of tests that belong to no campaign: those that failed, and those that have trials and no result."""
    results, part = scene.groups.results, scene.part
    if part.case:
        return
    failed = set()
    for skip in results.skipped:
        parts = skip.job.split("|")
        if skip.job not in results.jobs and len(parts) == BY_HAND and parts[3] == test:
            failed.add((skip.campaign, parts[1], parts[4]))
            yield Gap(job_name(skip.job, results, words), sentence_text(skip.reason, words))
    with_result = {question(one) for one in results_of(test, part.results)}
    tried: dict[tuple[str, ...], list[Trial]] = {}
    for trial in part.results.trials:
        if trial.test == test and question(trial) not in with_result:
            tried.setdefault(question(trial), []).append(trial)
    for trials in tried.values():
        one = trials[0]
        if (one.campaign, one.dut, one.frame) not in failed:
            names = {"dut": one.dut, "test": words.name("test", test), "frame": words.frame(one.frame)}
            yield Gap(words("trials.group", **names), why_invalid(trials, words))


def never_tried(test: str, scene: Scene, words: Words) -> Iterable[Gap]:
    """Frame sizes that one series of a chart has and another one was not measured with."""
    if scene.part.case:
        return  # its jobs say what was meant to be measured
    results = scene.part.results
    found = results_of(test, results)
    names = names_of((results.series_of(one) for one in found), words)
    shown = {(results.series_of(one), one.frame) for one in found}
    tried = {(one.campaign, one.dut, one.frame) for one in results.trials if one.test == test}
    for skip in scene.groups.results.skipped:
        parts = skip.job.split("|")
        tried |= {(skip.campaign, parts[1], parts[4])} if len(parts) == BY_HAND and parts[3] == test else set()
    for series, name in names.items():
        for frame in frames_of(found):
            if (series, frame) not in shown and (series.campaign, series.dut, frame) not in tried:
                yield Gap(words("gap.frame", name=name, frame=words.frame(frame)), words("gap.not_measured"))


def reason_of(trials: Iterable[Trial], words: Words) -> str:
    """Why the last of these trials is INVALID."""
    found = [trial.invalid[0] for trial in trials if trial.invalid]
    return reason_text(found[-1], words) if found else words("gap.unknown")


def load_gaps(test: str, scene: Scene, words: Words) -> Iterable[Gap]:
    """Loads of frame loss and forwarding rate tests without a valid trial."""
    for result in results_of(test, scene.part.results):
        if isinstance(result, OverLoads) and result.invalid_shares:
            group = scene.groups.of(result)
            where = {"dut": result.dut, "frame": words.frame(result.frame), "loads": percents(result.invalid_shares)}
            reason = reason_of(group.trials if group else (), words)
            yield Gap(words("gap.loads", **where), words("gap.all_invalid", reason=reason))


def latency_gaps(scene: Scene, words: Words) -> Iterable[Gap]:
    """Loads at which latency has no valid trial, or nothing came back."""
    results = scene.part.results
    drawn = {(question(trial), trial.load) for trial in results.latencies if trial.latency.n}
    measured = {key for key, _ in drawn}
    missing: dict[tuple[tuple[str, ...], float | None], list[Trial]] = {}
    for trial in results.trials:
        key = (question(trial), trial.load)
        if trial.test == "latency" and key not in drawn and question(trial) in measured:
            missing.setdefault(key, []).append(trial)
    for (_, load), trials in missing.items():
        one, at = trials[0], percents([load]) if load is not None else ""
        name = words(
            "gap.loads" if at else "gap.frame", dut=one.dut, name=one.dut, frame=words.frame(one.frame), loads=at
        )
        is_empty = any(not trial.invalid for trial in trials)
        why = words("gap.empty") if is_empty else words("gap.all_invalid", reason=reason_of(trials, words))
        yield Gap(name, why)


def left_loads(scene: Scene, words: Words) -> Iterable[Gap]:
    """Planned loads of latency that were not tried at all, though others of the job were."""
    results, case = scene.groups.results, scene.part.case
    trials = [trial for trial in scene.part.results.trials if trial.test == "latency" and trial.load is not None]
    for job in case.jobs if case else ():
        tried = {round(trial.load or 0.0, 6) for trial in trials if trial.job == job.key}
        left = [load for load in job.effort.loads if round(load, 6) not in tried]
        if job.test == "latency" and tried and left:
            where = {"dut": job.setup.dut.name, "frame": words.frame(job.frame), "loads": percents(left)}
            reason = words("gap.budget" if budget_of(job, results.plans) else "gap.not_reached")
            yield Gap(words("gap.loads", **where), reason)


def gaps(test: str, scene: Scene, words: Words) -> list[Gap]:
    """All points that charts of a test lack."""
    found = [*planned_gaps(test, scene, words), *loose_gaps(test, scene, words), *never_tried(test, scene, words)]
    found += load_gaps(test, scene, words)
    found += [*latency_gaps(scene, words), *left_loads(scene, words)] if test == "latency" else []
    return found


def gap_sentences(topic: str, scene: Scene, words: Words) -> list[str]:
    """A sentence for each reason, with the points that are missing because of it."""
    test = TESTS.get(topic)
    if test is None:
        return []
    found = grouped(((one.name, one.reason) for one in gaps(test, scene, words)), lambda reason: reason)
    return [words("gap", names=listed(one.names, words), reason=one.of) for one in found]


def listed(names: Sequence[str], words: Words) -> str:
    """Names in a sentence; of many the first."""
    more = [words("fact.more", n=len(names) - N_NAMES)] if len(names) > N_NAMES else []
    return words("list.semicolon").join([*names[:N_NAMES], *more])
