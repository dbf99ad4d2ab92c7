"""Estimates the duration of jobs in seconds. The constants were measured on a machine with two cores, rounded up.

While a campaign runs, measured durations correct the estimates (see Pace).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dl3.model.campaign import Job, Setup, Traffic
from dl3.model.durations import first_s, has_middle, n_finals
from dl3.model.flow_memory import n_table_flows

BED_S: Mapping[str, float] = {"linux": 3.0, "ovs": 6.0, "external": 1.0}  # time to start, check and stop a testbed
OTHER_BED_S = 3.0
PAGES_S_PER_GIB = 0.6  # huge pages are cleared
FLOWS_S_PER_MILLION = 0.01  # per direction, generated for each trial
TABLE_S_PER_MILLION = 1.0  # flows of a table: their file, once, and loading them
WARM_UP_S = 0.2  # at most, and no longer than the trial
TRIAL_S = 0.5  # start, observing the machine, draining, reading counters
LOOKS_S = 0.25  # noise checks before and after a search
AGAIN = 1.25  # some trials of a search are INVALID and repeated
PROOF_S = 8.0  # per frame size
CEILING_S = 2.0  # maximum duration of a trial at full speed
HINTED = 3  # trials at rates derived from the device's own results
SHORT = 2  # initial trials of MLRsearch, besides bisection
MIDDLE = 1.5  # trials of intermediate duration, if there are any
FULL = 2.0  # full-length MLRsearch trials for one goal: one that passes, one that fails
FULL_PER_GOAL = 0.75  # for each further goal: goals share trials
STEPS = 10  # loads of a frame loss test, in steps of 10 %
BURSTS = 12
RESETS_S = 8.0  # until a device forwards again

Bed = tuple[Setup, Traffic]


def halvings(resolution: float) -> float:
    """Number of bisections over the factor of two in which a search ends."""
    return max(1.0, math.log2(math.log(2) / -math.log1p(-resolution)))


def trial_s(job: Job, seconds: float = 0.0) -> float:
    """Total time of one trial of the given or full duration."""
    seconds = seconds or job.effort.seconds
    return seconds + min(WARM_UP_S, seconds) + TRIAL_S + FLOWS_S_PER_MILLION * job.traffic.flows / 1e6


def halving_s(job: Job) -> float:
    """A binary search per goal: the upper bound, hinted rates, bisection."""
    return (HINTED + 0.6 * halvings(job.effort.resolution)) * len(job.effort.goals) * trial_s(job)


def mlrsearch_s(job: Job) -> float:
    """MLRsearch for all goals: bisection with short trials, verdicts with full-length ones."""
    effort, n_more = job.effort, len(job.effort.goals) - 1
    short_s = first_s(effort.seconds)
    n_middle = MIDDLE if has_middle(effort.seconds) else 0.0
    return (
        (SHORT + 0.6 * halvings(effort.resolution)) * trial_s(job, short_s)
        + n_middle * (1 + 0.5 * n_more) * trial_s(job, math.sqrt(short_s * effort.seconds))
        + (FULL + FULL_PER_GOAL * n_more) * n_finals(1, effort.exceed) * trial_s(job)
    )


def search_s(job: Job) -> float:
    """One search and the ceiling measurement before it; shorter if the device keeps up with the ceiling."""
    one_s = mlrsearch_s(job) if job.effort.method == "mlrsearch" else halving_s(job)
    return LOOKS_S + AGAIN * one_s + trial_s(job, min(job.effort.seconds, CEILING_S))


def job_s(job: Job) -> float:
    """One job on a running testbed."""
    effort, one_s = job.effort, trial_s(job)
    times = {
        "throughput": search_s(job) * effort.repetitions,
        "latency": one_s * len(effort.loads),
        "frame loss": one_s * (STEPS + len(effort.rates)),
        "back-to-back": one_s * BURSTS * effort.repetitions,
        "recovery": (one_s + effort.seconds) * effort.repetitions,
        "reset": (one_s + RESETS_S) * effort.repetitions,
        "forwarding": one_s * STEPS,
    }
    return times[job.test]


def bed_of(job: Job) -> Bed:
    """The testbed of a job; jobs with the same testbed share its start."""
    return job.setup, job.traffic


def bed_s(bed: Bed) -> float:
    """Start, first frames and stop."""
    setup, traffic = bed
    table_s = TABLE_S_PER_MILLION * n_table_flows(traffic.flows) / 1e6 if setup.dut.has_flow_table else 0.0
    return BED_S.get(setup.dut.kind, OTHER_BED_S) + PAGES_S_PER_GIB * setup.memory_mib / 1024 + table_s


def grouped(jobs: Iterable[Job]) -> list[list[Job]]:
    """Group jobs by testbed, in the order of first use; jobs keep their order."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        setup, traffic = bed_of(job)
        groups.setdefault(setup.model_dump_json() + traffic.model_dump_json(), []).append(job)
    return list(groups.values())


@dataclass
class Pace:
    """Planned against actual durations of testbeds and jobs; used to correct later estimates."""

    planned_s: dict[str, float] = field(default_factory=lambda: {"bed": 0.0, "job": 0.0})
    took_s: dict[str, float] = field(default_factory=lambda: {"bed": 0.0, "job": 0.0})

    def learn(self, what: str, planned_s: float, took_s: float) -> None:
        """Add one testbed ('bed') or job ('job')."""
        self.planned_s[what] += planned_s
        self.took_s[what] += took_s

    def factor(self, what: str) -> float:
        """Ratio of actual to planned time; the plan is weighted like 30 s of measured job time, or 10 s of testbed
        time.
        """
        prior_s = 30.0 if what == "job" else 10.0
        return (self.took_s[what] + prior_s) / (self.planned_s[what] + prior_s)


def total_s(jobs: Sequence[Job], pace: Pace | None = None, n_proofs: int = 0) -> float:
    """Total time of the jobs, with the testbeds they need and the self-tests before them."""
    pace = pace or Pace()
    beds_s = sum(bed_s(bed_of(group[0])) for group in grouped(jobs))
    return beds_s * pace.factor("bed") + sum(map(job_s, jobs)) * pace.factor("job") + n_proofs * PROOF_S
