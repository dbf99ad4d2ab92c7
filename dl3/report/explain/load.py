"""Arithmetic of a worker under load: what each of its rings gets, how long that fits, what a pause costs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from dl3.model.evidence import Evidence, Work
from dl3.model.trial import Trial

FULL = 0.95  # of what a worker can do: its price is that of the bursts that were timed
NEVER_EMPTY = 0.02  # share of rounds that found nothing, at most, of a worker that is always busy


def ring_frames(trial: Trial) -> int:
    """That a receive queue of the device holds: as dl3d says, else as the laboratory knows; 0: unknown."""
    if trial.evidence and trial.evidence.ring_frames:
        return trial.evidence.ring_frames
    lab = trial.facts.get("lab")
    found = lab.get("ring_frames") if isinstance(lab, Mapping) else None
    return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class Load:
    """What one worker of the device was offered."""

    rates_pps: tuple[float, ...]  # of each queue that got something
    ring_frames: int

    @property
    def busiest_pps(self) -> float:
        """Of the queue that got most."""
        return max(self.rates_pps, default=0.0)

    @property
    def holds_us(self) -> float:
        """How long a pause may last before the first ring overflows; 0: unknown."""
        return self.ring_frames / self.busiest_pps * 1e6 if self.busiest_pps else 0.0

    def lost_in(self, pause_us: float) -> int:
        """Frames that find no room in a pause, if all rings were empty when it began."""
        return round(sum(max(0.0, pps * pause_us / 1e6 - self.ring_frames) for pps in self.rates_pps))


def load_of(trial: Trial, worker: int) -> Load:
    """Of a worker of dl3d; all that was offered, where it is not known how workers share it."""
    works = trial.evidence.work if trial.evidence else ()
    total, frames = sum(sum(work.queues.values()) for work in works), ring_frames(trial)
    own = next((work for work in works if work.worker == worker), None)
    if not total or not own:
        return Load((trial.offered_pps,), frames)
    return Load(tuple(n / total * trial.offered_pps for n in own.queues.values() if n > 0), frames)


@dataclass(frozen=True)
class Strain:
    """How near a worker is to what it can do."""

    work: Work
    offered_pps: float
    cycles: float  # of a packet; 0: not measured
    most_pps: float  # that the worker can do at that price; 0: not known
    empty: float  # share of its rounds that found nothing, also of those before and after the trial
    seconds: float  # of the trial, in which it did not pause
    is_alone: bool  # so that it got all that was offered; else its share is that of what workers received

    @property
    def fill(self) -> float:
        """Offered / most; 0: not known."""
        return self.offered_pps / self.most_pps if self.most_pps else 0.0

    @property
    def busy(self) -> float:
        """Share of that time that its packets took; 0: not known."""
        can = self.most_pps * self.seconds
        return self.work.packets / can if can > 0 else 0.0

    @property
    def never_waits(self) -> bool:
        """Whether it hardly ever found no packet, though as many came as it can do at most."""
        return self.fill >= FULL and self.empty <= NEVER_EMPTY

    @property
    def is_full(self) -> bool:
        """It never waited; or its price says that it could not do what it was offered.

        Where several workers share the load, it has to have done as much as it can, too: those that are not full seem
        to be offered a part of what others lost.
        """
        return self.never_waits or (self.fill >= 1 and (self.is_alone or self.busy >= FULL))

    @property
    def excess(self) -> int:
        """Frames that a full worker could not do: all others, if it never waited; else as its price tells."""
        if self.never_waits:
            return max(0, round(self.offered_pps * self.seconds) - self.work.packets)
        return round(max(0.0, self.offered_pps - FULL * self.most_pps) * self.seconds)

    @property
    def steps(self) -> str:
        """Cycles of each step, the costliest first."""
        costs = sorted(self.work.cycles_per_packet.items(), key=lambda step: -step[1])
        return ", ".join(f"{name} {cost:.0f}" for name, cost in costs)

    @property
    def costliest(self) -> str:
        """The step that takes most."""
        costs = self.work.cycles_per_packet
        return max(costs, key=lambda name: costs[name], default="")

    @property
    def burst(self) -> float:
        """Frames at a time."""
        return self.work.packets / self.work.bursts if self.work.bursts else 0.0


def polled_s(trial: Trial, worker: int) -> float:
    """How long a worker of dl3d polled while frames were sent: all but its known pauses."""
    gaps = trial.evidence.gaps if trial.evidence else ()
    paused_us = sum(gap.us for gap in gaps if (gap.program, gap.worker) == ("dl3d", worker))
    return max(0.0, trial.seconds - paused_us / 1e6)


def strain_of(trial: Trial, work: Work) -> Strain:
    """Of one worker."""
    cycles = sum(work.cycles_per_packet.values())
    offered_pps = sum(load_of(trial, work.worker).rates_pps)
    most_pps = work.tsc_hz / cycles if cycles else 0.0
    empty = work.empty_loops / work.loops if work.loops else 0.0
    n_working = sum(1 for one in (trial.evidence.work if trial.evidence else ()) if one.packets > 0)
    return Strain(work, offered_pps, cycles, most_pps, empty, polled_s(trial, work.worker), n_working == 1)


def strains(evidence: Evidence | None, trial: Trial) -> list[Strain]:
    """Of all workers that did something, the fullest first."""
    found = [strain_of(trial, work) for work in (evidence.work if evidence else ()) if work.packets > 0]
    return sorted(found, key=lambda strain: (-strain.fill, strain.empty))
