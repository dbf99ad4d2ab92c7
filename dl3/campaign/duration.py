"""How long jobs take, in seconds. The constants were measured on a machine with two cores, and are a little generous.

While a campaign runs, what it measures corrects them (see Pace).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dl3.model.campaign import Job, Setup, Traffic
from dl3.model.durations import first_s, has_middle, n_finals

BED_S: Mapping[str, float] = {"linux": 3.0, "ovs": 6.0, "external": 1.0}  # started, checked and ended
OTHER_BED_S = 3.0
PAGES_S_PER_GIB = 0.6  # huge pages are cleared
FLOWS_S_PER_MILLION = 0.01  # of one direction, laid out for each trial
WARM_UP_S = 0.2  # at most, and no longer than the trial
TRIAL_S = 0.5  # starting, watching the machine, waiting for stragglers, reading
LOOKS_S = 0.25  # at the machine, before and after a search
AGAIN = 1.25  # some trials of a search are INVALID, and made again
PROOF_S = 8.0  # of one frame size
CEILING_S = 2.0  # the longest that a trial at full speed takes
HINTED = 3  # trials at rates that the device itself has named
SHORT = 2  # of MLRsearch's first trials, beside those that halve
MIDDLE = 1.5  # trials between short and full ones, where there are any
FULL = 2.0  # MLRsearch's trials of full length for one goal: one that passes, one that does not
FULL_PER_GOAL = 0.75  # for each other goal: goals share their trials
STEPS = 10  # loads of a frame loss test, in steps of a tenth
BURSTS = 12
RESETS_S = 8.0  # until a device forwards again

Bed = tuple[Setup, Traffic]


def halvings(resolution: float) -> float:
    """Of the factor of two in which a search ends."""
    return max(1.0, math.log2(math.log(2) / -math.log1p(-resolution)))


def trial_s(job: Job, seconds: float = 0.0) -> float:
    """One trial, all told: of so many seconds, or of full length."""
    seconds = seconds or job.effort.seconds
    return seconds + min(WARM_UP_S, seconds) + TRIAL_S + FLOWS_S_PER_MILLION * job.traffic.flows / 1e6


def halving_s(job: Job) -> float:
    """A binary search for each goal: the upper bound, rates that the device names, halvings."""
    return (HINTED + 0.6 * halvings(job.effort.resolution)) * len(job.effort.goals) * trial_s(job)


def mlrsearch_s(job: Job) -> float:
    """MLRsearch for all goals: it halves with short trials, and decides with those of full length."""
    effort, n_more = job.effort, len(job.effort.goals) - 1
    short_s = first_s(effort.seconds)
    n_middle = MIDDLE if has_middle(effort.seconds) else 0.0
    return (
        (SHORT + 0.6 * halvings(effort.resolution)) * trial_s(job, short_s)
        + n_middle * (1 + 0.5 * n_more) * trial_s(job, math.sqrt(short_s * effort.seconds))
        + (FULL + FULL_PER_GOAL * n_more) * n_finals(1, effort.exceed) * trial_s(job)
    )


def search_s(job: Job) -> float:
    """One search and the ceiling before it; a device that keeps up with the ceiling is done sooner."""
    one_s = mlrsearch_s(job) if job.effort.method == "mlrsearch" else halving_s(job)
    return LOOKS_S + AGAIN * one_s + trial_s(job, min(job.effort.seconds, CEILING_S))


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
        """How much longer than planned; what was planned weighs as much as half a minute of measuring."""
        prior_s = 30.0 if what == "job" else 10.0
        return (self.took_s[what] + prior_s) / (self.planned_s[what] + prior_s)


def total_s(jobs: Sequence[Job], pace: Pace | None = None, n_proofs: int = 0) -> float:
    """All of them, with the beds that they need and the proofs that go before."""
    pace = pace or Pace()
    beds_s = sum(bed_s(bed_of(group[0])) for group in grouped(jobs))
    return beds_s * pace.factor("bed") + sum(map(job_s, jobs)) * pace.factor("job") + n_proofs * PROOF_S
