"""Arithmetic of a lane under load: what each of its rings gets, how long that fits, what a pause costs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from dl3.model.evidence import Evidence, Work
from dl3.model.trial import Trial


def ring_frames(trial: Trial) -> int:
    """That a receive queue of the device holds: as dl3d says, else as the laboratory knows; 0: unknown."""
    if trial.evidence and trial.evidence.ring_frames:
        return trial.evidence.ring_frames
    lab = trial.facts.get("lab")
    found = lab.get("ring_frames") if isinstance(lab, Mapping) else None
    return found if isinstance(found, int) else 0


@dataclass(frozen=True)
class Load:
    """What one lane of the device was offered."""

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


def load_of(trial: Trial, lane: int) -> Load:
    """Of a lane of dl3d; all that was offered, where it is not known how lanes share it."""
    works = trial.evidence.work if trial.evidence else ()
    total, frames = sum(sum(work.queues.values()) for work in works), ring_frames(trial)
    own = next((work for work in works if work.lane == lane), None)
    if not total or not own:
        return Load((trial.offered_pps,), frames)
    return Load(tuple(n / total * trial.offered_pps for n in own.queues.values() if n > 0), frames)


@dataclass(frozen=True)
class Strain:
    """How near a lane is to what it can do."""

    work: Work
    offered_pps: float
    cycles: float  # of a packet; 0: not measured
    most_pps: float  # that the lane can do at that price; 0: not known
    empty: float  # share of its rounds that found nothing

    @property
    def fill(self) -> float:
        """Offered / most; 0: not known."""
        return self.offered_pps / self.most_pps if self.most_pps else 0.0

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


def strain_of(trial: Trial, work: Work) -> Strain:
    """Of one lane."""
    cycles = sum(work.cycles_per_packet.values())
    offered_pps = sum(load_of(trial, work.lane).rates_pps)
    most_pps = work.tsc_hz / cycles if cycles else 0.0
    empty = work.empty_loops / work.loops if work.loops else 0.0
    return Strain(work, offered_pps, cycles, most_pps, empty)


def strains(evidence: Evidence | None, trial: Trial) -> list[Strain]:
    """Of all lanes that did something, the fullest first."""
    found = [strain_of(trial, work) for work in (evidence.work if evidence else ()) if work.packets > 0]
    return sorted(found, key=lambda strain: (-strain.fill, strain.empty))
