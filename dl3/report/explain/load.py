"""Arithmetic of a worker under load: the rate of each ring, how long a ring lasts, the cost of a stall. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from dl3.model.evidence import Evidence, Work
from dl3.model.trial import Trial

FULL = 0.95  # of a worker's capacity: its cost per packet is that of the timed bursts
NEVER_EMPTY = 0.02  # maximum share of empty polls of a worker that is always busy


def ring_frames(trial: Trial) -> int:
    """Descriptors of a receive queue of the device, from dl3d or else from the testbed; 0: unknown."""
    if trial.evidence and trial.evidence.ring_frames:
        return trial.evidence.ring_frames
    lab = trial.facts.get("lab")
    found = lab.get("ring_frames") if isinstance(lab, Mapping) else None
    return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class Load:
    """The load offered to one worker of the device."""

    rates_pps: tuple[float, ...]  # of each queue that received anything
    ring_frames: int

    @property
    def busiest_pps(self) -> float:
        """The rate of the busiest queue."""
        return max(self.rates_pps, default=0.0)

    @property
    def holds_us(self) -> float:
        """How long a stall may last before the first ring overflows; 0: unknown."""
        return self.ring_frames / self.busiest_pps * 1e6 if self.busiest_pps else 0.0

    def lost_in(self, stall_us: float) -> int:
        """Frames that do not fit into the rings during a stall, if all rings were empty at its start."""
        return round(sum(max(0.0, pps * stall_us / 1e6 - self.ring_frames) for pps in self.rates_pps))


def load_of(trial: Trial, worker: int) -> Load:
    """The load of a dl3d worker; all that was offered if the distribution over workers is unknown."""
    works = trial.evidence.work if trial.evidence else ()
    total, frames = sum(sum(work.queues.values()) for work in works), ring_frames(trial)
    own = next((work for work in works if work.worker == worker), None)
    if not total or not own:
        return Load((trial.offered_pps,), frames)
    return Load(tuple(n / total * trial.offered_pps for n in own.queues.values() if n > 0), frames)


@dataclass(frozen=True)
class Strain:
    """How close a worker is to its capacity."""

    work: Work
    offered_pps: float
    cycles: float  # per packet; 0: not measured
    most_pps: float  # the worker's capacity at that cost; 0: unknown
    empty: float  # share of empty polls, including those before and after the trial
    seconds: float  # of the trial without stalls
    is_alone: bool  # it received all that was offered; otherwise its share is the share of what workers received

    @property
    def fill(self) -> float:
        """Offered / capacity; 0: unknown."""
        return self.offered_pps / self.most_pps if self.most_pps else 0.0

    @property
    def busy(self) -> float:
        """Share of that time spent on packets; 0: unknown."""
        can = self.most_pps * self.seconds
        return self.work.packets / can if can > 0 else 0.0

    @property
    def never_waits(self) -> bool:
        """Whether polls were hardly ever empty while it was offered at least its capacity."""
        return self.fill >= FULL and self.empty <= NEVER_EMPTY

    @property
    def is_full(self) -> bool:
        """Whether it never idled, or its cost per packet is too high for the load it was offered.

        If several workers share the load, it must also have been busy all the time: a worker that is not fully loaded
        seems to be offered a part of what the others lost.
        """
        return self.never_waits or (self.fill >= 1 and (self.is_alone or self.busy >= FULL))

    @property
    def excess(self) -> int:
        """Frames beyond the capacity of a full worker: the rest if it never idled, else computed from its cost."""
        if self.never_waits:
            return max(0, round(self.offered_pps * self.seconds) - self.work.packets)
        return round(max(0.0, self.offered_pps - FULL * self.most_pps) * self.seconds)

    @property
    def steps(self) -> str:
        """Cycles of each step, the most expensive first."""
        costs = sorted(self.work.cycles_per_packet.items(), key=lambda step: -step[1])
        return ", ".join(f"{name} {cost:.0f}" for name, cost in costs)

    @property
    def costliest(self) -> str:
        """The most expensive step."""
        costs = self.work.cycles_per_packet
        return max(costs, key=lambda name: costs[name], default="")

    @property
    def burst(self) -> float:
        """Frames per burst."""
        return self.work.packets / self.work.bursts if self.work.bursts else 0.0


def polled_s(trial: Trial, worker: int) -> float:
    """How long a dl3d worker polled while frames were sent: all but its known stalls."""
    gaps = trial.evidence.gaps if trial.evidence else ()
    stalled_us = sum(gap.us for gap in gaps if (gap.program, gap.worker) == ("dl3d", worker))
    return max(0.0, trial.seconds - stalled_us / 1e6)


def strain_of(trial: Trial, work: Work) -> Strain:
    """The load of one worker."""
    cycles = sum(work.cycles_per_packet.values())
    offered_pps = sum(load_of(trial, work.worker).rates_pps)
    most_pps = work.tsc_hz / cycles if cycles else 0.0
    empty = work.empty_loops / work.loops if work.loops else 0.0
    n_working = sum(1 for one in (trial.evidence.work if trial.evidence else ()) if one.packets > 0)
    return Strain(work, offered_pps, cycles, most_pps, empty, polled_s(trial, work.worker), n_working == 1)


def strains(evidence: Evidence | None, trial: Trial) -> list[Strain]:
    """The load of all active workers, the busiest first."""
    found = [strain_of(trial, work) for work in (evidence.work if evidence else ()) if work.packets > 0]
    return sorted(found, key=lambda strain: (-strain.fill, strain.empty))
