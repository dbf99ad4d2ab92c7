"""Builds a plan from a campaign and a machine: what will be measured, in which order, and for how long."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from dl3.campaign.budget import Fitted, fitted, shortest, what_was_shortened
from dl3.campaign.duration import Pace, grouped, total_s
from dl3.campaign.expand import expanded
from dl3.campaign.machine import Machine
from dl3.campaign.proofs import n_proofs
from dl3.campaign.reader import Campaign
from dl3.model.campaign import Case, Job, Plan, Text
from dl3.model.deviations import deviations


def jobs_of(plan: Plan) -> tuple[Job, ...]:
    """All jobs of a plan in execution order: those with the same testbed together."""
    return tuple(job for group in grouped(job for case in plan.cases for job in case.jobs) for job in group)


def with_jobs(cases: Sequence[Case], jobs: Iterable[Job]) -> tuple[Case, ...]:
    """The cases with their jobs replaced by these, matched by key; other jobs are removed."""
    now = {job.key: job for job in jobs}
    return tuple(
        case.model_copy(update={"jobs": tuple(now[job.key] for job in case.jobs if job.key in now)}) for case in cases
    )


def deviations_of(jobs: Iterable[Job]) -> list[Text]:
    """Deviations from the RFCs, one sentence each."""
    return list(dict.fromkeys(text for job in jobs for text in deviations(job.effort, job.test)))


def planned(campaign: Campaign, machine: Machine, at: str, budget_s: float = 0.0) -> Plan:
    """Build the plan. With a budget, the jobs are reduced to fit and the plan lists the reductions."""
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
        deviations=(*deviations_of(fit.jobs), *(text.text() for text in written.deviations)),
    )


def refitted(plan: Plan, whole: Plan, left: Collection[str], seconds: float, pace: Pace) -> Plan:
    """The plan with the jobs of these keys refitted into `seconds`; UsageFault if they do not fit at all.

    `whole` is the result of comparable(): earlier reductions are undone if there is time again.
    """
    return with_fitted(plan, whole, left, fitted(wanted(whole, left), seconds, pace).jobs, pace)


def shortest_of(plan: Plan, whole: Plan, left: Collection[str], pace: Pace) -> Plan:
    """The plan with the jobs of these keys at their minimum duration."""
    return with_fitted(plan, whole, left, shortest(wanted(whole, left)), pace)


def wanted(whole: Plan, keys: Collection[str]) -> list[Job]:
    """The jobs of these keys in execution order."""
    return [job for job in jobs_of(whole) if job.key in keys]


def with_fitted(plan: Plan, whole: Plan, left: Collection[str], fit: Sequence[Job], pace: Pace) -> Plan:
    """The plan with its jobs of these keys replaced by `fit`."""
    cases = with_jobs(whole.cases, [*(job for job in jobs_of(plan) if job.key not in left), *fit])
    jobs = [job for case in cases for job in case.jobs]
    of_rfcs = set(deviations_of(jobs_of(plan)))
    return plan.model_copy(
        update={
            "cases": cases,
            "seconds": total_s(fit, pace),
            "shortened": (*whole.shortened, *what_was_shortened(jobs_of(whole), jobs)),
            "deviations": (*deviations_of(jobs), *(text for text in plan.deviations if text not in of_rfcs)),
        }
    )


def comparable(plan: Plan, whole: Plan | None) -> Plan:
    """The unreduced campaign, if it was planned for an equivalent machine; otherwise the plan itself."""
    if whole and [unable(case) for case in plan.cases] == [unable(case) for case in whole.cases]:
        return whole
    return plan


def unable(case: Case) -> tuple[object, ...]:
    """The parts of a case that the machine cannot run."""
    return case.key, case.left_out, case.reason


def by_key(plan: Plan) -> Mapping[str, Job]:
    """All jobs of a plan by key."""
    return {job.key: job for case in plan.cases for job in case.jobs}
