"""Gaps, what they cost at 10 GbE, and their causes. Pure."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from dl3.model.evidence import Event
from dl3.model.noun import Noun

FRAME_NS = 67.2  # 64 bytes at 10 Gbit/s, with preamble and inter-frame gap
RINGS = (128, 2048)
LEAST_OVERLAP = 1 / 3  # of a gap, by its cause
UNKNOWN = "unknown"


def frames_lost(us: float, ring: int) -> int:
    """Frames that a receive queue loses in a gap: those that arrive after its ring is full."""
    return max(0, int(us * 1000 / FRAME_NS) - ring)


class CoreGap(Noun):
    """One gap. `kind`: of the event that caused it, empty if none is known."""

    core: int
    at_ns: int  # CLOCK_MONOTONIC, end
    us: float
    cause: str = UNKNOWN
    kind: str = ""


class CoreGaps(Noun):
    """All gaps of a core. `n`: all of them, also those that are not kept one by one."""

    core: int
    seconds: float
    n: int
    gaps: tuple[CoreGap, ...] = ()

    @property
    def longest_us(self) -> float:
        """The longest gap."""
        return max((one.us for one in self.gaps), default=0.0)

    def lost(self, ring: int) -> int:
        """Frames lost in all of them."""
        return sum(frames_lost(one.us, ring) for one in self.gaps)


class Cause(Noun):
    """What took a core, over all gaps with this cause."""

    core: int
    who: str
    kind: str
    n: int
    longest_us: float
    total_us: float
    lost: dict[int, int]  # by size of the ring


class Jitter(Noun):
    """One measurement. `missing`: evidence that this machine cannot provide."""

    least_us: float
    cores: tuple[CoreGaps, ...]
    stolen_ms: dict[int, float] = Field(default_factory=dict)  # by core; by the hypervisor
    missing: tuple[str, ...] = ()

    def lost(self, ring: int) -> int:
        """Frames lost on all cores."""
        return sum(one.lost(ring) for one in self.cores)


def overlap_ns(gap: CoreGap, event: Event) -> float:
    """The time that an event and a gap have in common."""
    begun = max(gap.at_ns - gap.us * 1000, event.at_ns - event.us * 1000)
    return min(gap.at_ns, event.at_ns) - begun


def named(gap: CoreGap, events: Sequence[Event]) -> CoreGap:
    """A gap with its cause: the event of its core that took most of it, if events explain it at all. Interrupts are
    handled within the time of a thread, so that they are not added up.
    """
    shares = [(overlap_ns(gap, event), event) for event in events]
    best_ns, best = max(shares, key=lambda one: one[0], default=(0.0, None))
    explained_ns = max(best_ns, sum(ns for ns, event in shares if event.what == "switch"))
    if not best or explained_ns < LEAST_OVERLAP * gap.us * 1000:
        return gap
    return gap.model_copy(update={"cause": best.who, "kind": best.what})


def with_causes(gaps: Sequence[CoreGap], events: Iterable[Event]) -> tuple[CoreGap, ...]:
    """All gaps of a core with their causes. Both are walked once, in order of time."""
    found, left = list[CoreGap](), sorted((one for one in events if one.us > 0), key=lambda event: event.at_ns)
    n = 0
    for gap in sorted(gaps, key=lambda one: one.at_ns):
        begun_ns = gap.at_ns - gap.us * 1000
        while n < len(left) and left[n].at_ns < begun_ns:
            n += 1
        near, last = list[Event](), n
        while last < len(left) and left[last].at_ns - left[last].us * 1000 <= gap.at_ns:
            near.append(left[last])
            last += 1
        found.append(named(gap, near))
    return tuple(found)


def causes_of(jitter: Jitter) -> tuple[Cause, ...]:
    """Causes on each core, the most expensive first."""
    groups: dict[tuple[int, str, str], list[CoreGap]] = {}
    for one in jitter.cores:
        for gap in one.gaps:
            groups.setdefault((gap.core, gap.cause, gap.kind), []).append(gap)
    found = [
        Cause(
            core=core,
            who=who,
            kind=kind,
            n=len(gaps),
            longest_us=max(gap.us for gap in gaps),
            total_us=round(sum(gap.us for gap in gaps), 3),
            lost={ring: sum(frames_lost(gap.us, ring) for gap in gaps) for ring in RINGS},
        )
        for (core, who, kind), gaps in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.core, -one.total_us, one.who)))
