"""A campaign and a machine make a plan: what will be measured, in which order, and how long it takes."""

from collections.abc import Iterable, Mapping, Sequence

from dl3.campaign.budget import Fitted, fitted, shortest, what_was_shortened
from dl3.campaign.duration import Pace, grouped, total_s
from dl3.campaign.expand import expanded
from dl3.campaign.machine import Machine
from dl3.campaign.reader import Campaign
from dl3.model.campaign import Case, Job, Plan, Text
from dl3.model.fault import UsageFault

RFC_TRIAL_S = 60.0


def jobs_of(plan: Plan) -> tuple[Job, ...]:
    """All of a plan, in the order in which they are made: those of one bed together."""
    return tuple(job for group in grouped(job for case in plan.cases for job in case.jobs) for job in group)


def n_proofs(jobs: Iterable[Job]) -> int:
    """Frame sizes for which the tester proves itself."""
    return len({job.frame for job in jobs if job.setup.dut.kind != "external" and job.test != "one core"})


def with_jobs(cases: Sequence[Case], jobs: Iterable[Job]) -> tuple[Case, ...]:
    """The cases with these jobs in place of theirs of the same key; others are left out."""
    now = {job.key: job for job in jobs}
    return tuple(
        case.model_copy(update={"jobs": tuple(now[job.key] for job in case.jobs if job.key in now)}) for case in cases
    )


def deviations(jobs: Sequence[Job]) -> list[Text]:
    """From the RFCs, as far as the plan itself makes them."""
    seconds = [job.effort.seconds for job in jobs]
    if not seconds or min(seconds) >= RFC_TRIAL_S:
        return []
    low, high = min(seconds), max(seconds)
    span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return [
        Text(
            en=f"RFC 2544 (24) wants trials of at least 60 s: here they last {span} s",
            zh=f"RFC 2544 第 24 节要求单次测试至少 60 秒：此处为 {span.replace(' to ', ' 至 ')} 秒",
        )
    ]


def planned(campaign: Campaign, machine: Machine, at: str, budget_s: float = 0.0) -> Plan:
    """The plan; with a budget it is made to fit, and says what it cost."""
    written = campaign.written
    cases = [expanded(case, written, machine) for case in written.cases]
    jobs = tuple(job for case in cases for job in case.jobs)
    fit = fitted(jobs, budget_s, n_proofs=n_proofs(jobs)) if budget_s else Fitted(jobs)
    return Plan(
        at=at,
        campaign=at,
        name=written.name,
        title=written.title.text(),
        source=campaign.source,
        cases=with_jobs(cases, fit.jobs),
        seconds=total_s(fit.jobs, n_proofs=n_proofs(fit.jobs)),
        budget_seconds=budget_s,
        shortened=fit.shortened,
        deviations=(*deviations(fit.jobs), *(text.text() for text in written.deviations)),
    )


def shortened(plan: Plan, left: Sequence[Job], seconds: float, pace: Pace, at: str) -> Plan:
    """The plan with those jobs that are left made to fit into `seconds`, or as short as can be where they do not."""
    try:
        fit = fitted(left, seconds, pace)
    except UsageFault:
        fit = least(left)
    kept = {job.key: job for job in fit.jobs}
    gone = {job.key for job in left} - kept.keys()
    jobs = [kept.get(job.key, job) for case in plan.cases for job in case.jobs if job.key not in gone]
    later = tuple(Text(en=f"after {at}: {text.en}", zh=f"{at} 之后：{text.zh}") for text in fit.shortened)
    return plan.model_copy(
        update={
            "at": at,
            "cases": with_jobs(plan.cases, jobs),
            "seconds": total_s(fit.jobs, pace),
            "shortened": (*plan.shortened, *later),
        }
    )


def least(jobs: Sequence[Job]) -> Fitted:
    """As short as can be."""
    short = shortest(jobs)
    return Fitted(short, tuple(what_was_shortened(jobs, short)))


def by_key(plan: Plan) -> Mapping[str, Job]:
    """All jobs of a plan."""
    return {job.key: job for case in plan.cases for job in case.jobs}
