"""The results in a campaign's record, one row each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dl3.cli.progress import limit_words
from dl3.cli.results import rate
from dl3.model.campaign import Job
from dl3.model.flow_hits import FlowHits, with_table
from dl3.model.results import BackToBack, Forwarding, FrameLoss, Recovery, Reset, Result
from dl3.model.trial import Throughput, Trial
from dl3.record.reader import Record, read


@dataclass(frozen=True)
class Row:
    """One result for display."""

    case: str
    device: str
    parameters: str
    test: str
    frame: str
    result: str
    job: str


def mean(values: tuple[float, ...]) -> float:
    """The mean; 0 if empty."""
    return sum(values) / len(values) if values else 0.0


def throughput_words(result: Throughput) -> str:
    """The rate and what limited it."""
    if not result.pps:
        return "no rate passed"
    goal = f" at a loss of {result.goal_loss_ratio:.2%}" if result.goal_loss_ratio else ""
    noise = ", noisy" if result.noise else ""
    return f"{rate(result, 1e-6)} Mpps{goal}, limited by {limit_words(result)}{noise}"


def latency_words(trial: Trial) -> str:
    """Median and tail latency at one load."""
    p50, p99, most = (ns / 1e3 for ns in (trial.latency.p50, trial.latency.p99, trial.latency.max))
    return f"{trial.load or 0:.0%} load: p50 {p50:.1f}, p99 {p99:.1f}, max {most:.1f} us"


def other_words(result: Result) -> str:
    """The main figure of the test."""
    match result:
        case FrameLoss():
            first = result.points[0] if result.points else None
            n_unknown = len(result.invalid_shares)
            more = f"; loads without a valid trial: {n_unknown}" if n_unknown else ""
            return f"{first.loss_ratio:.2%} lost at {first.pps / 1e6:.3f} Mpps{more}" if first else "-"
        case BackToBack():
            return f"{result.frames:,.0f} frames at {result.burst_pps / 1e6:.3f} Mpps"
        case Recovery():
            return f"recovers in {mean(result.seconds) * 1e3:.1f} ms"
        case Reset():
            return f"forwards again {mean(result.seconds):.2f} s after a reset of the {result.what}"
        case Forwarding():
            return f"forwards {result.most_pps / 1e6:.3f} Mpps at most"
    return result.dut


def jobs_of(record: Record) -> Mapping[str, Job]:
    """The jobs of all plans; the last plan counts."""
    return {job.key: job for plan in record.plans for case in plan.cases for job in case.jobs}


def found(record: Record) -> Iterator[tuple[str, str]]:
    """Job and text of each result; a repeated trial counts once, as its last run."""
    yield from ((result.job, throughput_words(result)) for result in record.results)
    yield from ((result.job, other_words(result)) for result in record.others)
    loads = {(trial.job, trial.load): trial for trial in record.trials if trial.test == "latency"}
    yield from ((trial.job, latency_words(trial)) for trial in loads.values())


def flow_sentences(record: Record) -> Iterator[str]:
    """Whether the packets of each case with a flow table had a flow, a sentence each."""
    cases: dict[str, list[Job]] = {}
    for job in jobs_of(record).values():
        cases.setdefault(job.case, []).append(job)
    for case, jobs in cases.items():
        hits = FlowHits.of(record.trials, with_table(jobs))
        if hits and hits.missed:
            yield f"{case}: {hits.missed:,} of {hits.packets:,} packets had no flow in the flow table and were dropped"
        elif hits:
            yield f"{case}: all {hits.packets:,} packets had a flow in the flow table"


def results(path: Path) -> list[Row]:
    """All results of jobs, in the order of the plan."""
    record = read(path)
    jobs, words = jobs_of(record), list(found(record))
    return [
        Row(
            job.case,
            job.setup.dut.name,
            ", ".join(f"{k} {v}" for k, v in job.parameters.items()),
            job.test,
            job.frame,
            text,
            key,
        )
        for key, job in jobs.items()
        for where, text in words
        if where == key
    ]
