"""Packets of trials that had a flow."""

from harness.campaigns import found_flows, white_paper
from harness.records import Maker

from dl3.model.campaign import Plan
from dl3.model.evidence import Evidence
from dl3.model.flow_hits import FlowHits, with_table

PLAN = next(record for record in white_paper() if isinstance(record, Plan))
JOBS = [job for case in PLAN.cases for job in case.jobs]
TABLE = with_table(JOBS)


def names_the_jobs_whose_device_has_a_table() -> None:
    assert {key.partition("|")[0] for key in TABLE} == {"1.8"}
    assert set(TABLE.values()) == {"dl3d-flow"}


def adds_up_the_packets_of_the_trials_of_these_jobs() -> None:
    first, second, other = (next(job for job in JOBS if job.case == case) for case in ("1.8", "1.8", "1.1"))
    trials = [
        Maker().trial("66", 1e6, job=first.key, **found_flows(first, 1e6)),
        Maker().trial("66", 2e6, job=second.key, **found_flows(second, 2e6, missed=3)),
        Maker().trial("66", 3e6, job=other.key, **found_flows(first, 3e6)),
    ]
    hits = FlowHits.of(trials, TABLE)
    assert hits
    assert (hits.packets, hits.found, hits.missed) == (15_000_000, 14_999_997, 3)


def says_nothing_without_a_count() -> None:
    assert FlowHits.of([Maker().trial("66", 1e6, job=next(iter(TABLE)))], TABLE) is None
    assert FlowHits.of([], TABLE) is None
    job = next(job for job in JOBS if job.key in TABLE)
    older = Evidence(
        work=tuple(one.model_copy(update={"flow_packets": None}) for one in found_flows(job, 1e6)["evidence"].work)
    )
    assert FlowHits.of([Maker().trial("66", 1e6, job=job.key, evidence=older)], TABLE) is None
