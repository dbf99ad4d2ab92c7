"""How long jobs take, in seconds. The constants were measured on a machine with two cores, and are a little generous.

While a campaign runs, what it measures corrects them (see Pace).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dl3.model.campaign import Effort, Job, Setup, Traffic

BED_S: Mapping[str, float] = {"linux": 3.0, "ovs": 12.0, "external": 1.0}  # started, checked and ended
OTHER_BED_S = 6.0
PAGES_S_PER_GIB = 0.4  # huge pages are cleared
FLOWS_S_PER_MILLION = 0.1  # of one direction, laid out for each trial
TRIAL_S = 0.75  # warming up, waiting for stragglers, reading
PROOF_S = 8.0  # of one frame size
CEILING_S = 2.0  # the longest that a trial at full speed takes
HINTED = 3  # trials at rates that the device itself has named
STEPS = 10  # loads of a frame loss test, in steps of a tenth
BURSTS = 12
RESETS_S = 8.0  # until a device forwards again

Bed = tuple[Setup, Traffic]


def halvings(resolution: float) -> float:
    """Of the factor of two in which a search ends."""
    return max(1.0, math.log2(math.log(2) / -math.log1p(-resolution)))


def search_trials(effort: Effort) -> float:
    """Of one search at each goal: the ceiling, the upper bound, rates that the device names, halvings."""
    n = HINTED + 0.6 * halvings(effort.resolution)
    if effort.method == "mlrsearch":
        return n * (1 + 0.5 * (len(effort.goals) - 1))  # goals share their trials
    return n * len(effort.goals)


def trial_s(job: Job) -> float:
    """One trial, all told."""
    return job.effort.seconds + TRIAL_S + FLOWS_S_PER_MILLION * job.traffic.flows / 1e6


def search_s(job: Job) -> float:
    """One search."""
    overhead_s = trial_s(job) - job.effort.seconds
    return search_trials(job.effort) * trial_s(job) + min(job.effort.seconds, CEILING_S) + overhead_s


def job_s(job: Job) -> float:
    """One job, its bed running."""
    effort, one_s = job.effort, trial_s(job)
    times = {
        "throughput": search_s(job) * effort.repetitions,
        "latency": one_s * len(effort.loads),
        "frame loss": one_s * STEPS,
        "back-to-back": one_s * BURSTS * effort.repetitions,
        "recovery": (one_s + effort.seconds) * effort.repetitions,
        "reset": (one_s + RESETS_S) * effort.repetitions,
        "forwarding": one_s * STEPS,
    }
    return times[job.test]


def bed_of(job: Job) -> Bed:
    """Jobs with the same one share a start."""
    return job.setup, job.traffic


def bed_s(bed: Bed) -> float:
    """Start, first frames and end."""
    setup, _ = bed
    return BED_S.get(setup.dut.kind, OTHER_BED_S) + PAGES_S_PER_GIB * setup.memory_mib / 1024


def grouped(jobs: Iterable[Job]) -> list[list[Job]]:
    """By bed, in the order in which beds come first; jobs keep theirs."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        setup, traffic = bed_of(job)
        groups.setdefault(setup.model_dump_json() + traffic.model_dump_json(), []).append(job)
    return list(groups.values())


@dataclass
class Pace:
    """What was planned against what it took, of beds and of jobs; later estimates are corrected by it."""

    planned_s: dict[str, float] = field(default_factory=lambda: {"bed": 0.0, "job": 0.0})
    took_s: dict[str, float] = field(default_factory=lambda: {"bed": 0.0, "job": 0.0})

    def learn(self, what: str, planned_s: float, took_s: float) -> None:
        """One more, of 'bed' or of 'job'."""
        self.planned_s[what] += planned_s
        self.took_s[what] += took_s

    def factor(self, what: str) -> float:
        """How much longer than planned; what was planned weighs as much as a first minute of measuring."""
        prior_s = 60.0 if what == "job" else 10.0
        return (self.took_s[what] + prior_s) / (self.planned_s[what] + prior_s)


def total_s(jobs: Sequence[Job], pace: Pace | None = None, n_proofs: int = 0) -> float:
    """All of them, with the beds that they need and the proofs that go before."""
    pace = pace or Pace()
    beds_s = sum(bed_s(bed_of(group[0])) for group in grouped(jobs))
    return beds_s * pace.factor("bed") + sum(map(job_s, jobs)) * pace.factor("job") + n_proofs * PROOF_S
