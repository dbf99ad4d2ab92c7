"""What stalls of the generator's workers can have cost a trial at most, and whether the trial counts nevertheless. Pure.

A stall of `us` microseconds at `rate` frames per second costs at most us x rate frames, whichever side it hits: the
sender did not offer them in time, or the sink did not take them from its ring. The rate is the one at which frames came
back outside of the stalls, for every device alike.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dl3.control.generator import Pauses, Results, WorkerPause
from dl3.model.evidence import Event, Stalled
from dl3.trial.account import total
from dl3.trial.order import Order

MOST_SHARE = 0.01  # of the frames that came back: the error with which a trial still counts
LEAST_US = 100.0  # every ring bridges shorter stalls
BRIDGED = 0.5  # of a ring: it may be half full when a stall begins
DRAIN_NS = 5_000_000  # after the end of sending: the longest time that full rings take to drain
LEAST_OUTSIDE = 0.2  # of a trial: if less is left outside of stalls, the rate outside of them is not known


@dataclass(frozen=True)
class Counts:
    """The frames of a trial, summed over all streams."""

    asked_pps: float  # 0: as fast as possible
    seconds: float
    sent: int
    received: int
    late: int = 0  # due, but never built
    corrupted: int = 0  # part of the lost ones

    @property
    def lost(self) -> int:
        """Sent and not received."""
        return max(0, self.sent - self.received)

    @property
    def missing(self) -> int:
        """Never built, or lost without being seen again."""
        return max(0, self.lost - self.corrupted) + self.late

    @classmethod
    def of(cls, results: Results) -> "Counts":
        """As counted by dl3gen."""
        streams = results.streams
        is_paced = all(stream.asked_pps for stream in streams)
        return cls(
            asked_pps=sum(stream.asked_pps for stream in streams) if is_paced else 0.0,
            seconds=results.seconds,
            **{field: total(streams, field) for field in ("sent", "received", "late", "corrupted")},
        )

    def rate_pps(self, stalled_us: float) -> float:
        """The rate at which frames came back outside of the stalls, at most the requested one. Unknown: the offered rate."""
        outside_s, least_s = self.seconds - stalled_us / 1e6, LEAST_OUTSIDE * self.seconds
        if outside_s < least_s:
            return self.asked_pps or self.sent / least_s
        came_pps = self.received / outside_s if outside_s else 0.0
        return min(came_pps, self.asked_pps) if self.asked_pps else came_pps


def most_frames(us: float, rate_pps: float, missing: int | None = None) -> int:
    """The frames that stalls of `us` in total can have cost: us x rate, and no more than are missing, if that is known."""
    frames = math.ceil(us * rate_pps / 1e6)
    return frames if missing is None else min(frames, missing)


def bridged_us(ring_frames: int, rate_pps: float, n_ports: int) -> float:
    """The longest stall that costs nothing, because rings of this size bridge it at this rate; 0 frames: unknown size."""
    if not ring_frames or not rate_pps:
        return LEAST_US
    return max(LEAST_US, BRIDGED * ring_frames * max(1, n_ports) / rate_pps * 1e6)


def ring_of(facts: Mapping[str, object]) -> int:
    """Descriptors of the rings of a lab; 0: unknown."""
    lab = facts.get("lab")
    found = lab.get("descriptors") if isinstance(lab, Mapping) else None
    return found if isinstance(found, int) else 0


def lengths_us(pauses: Pauses, start_ns: int, end_ns: int) -> list[float]:
    """The stalls within a trial. Where dl3gen has forgotten the oldest ones, the later ones stand for them."""
    spans = [(max(gap.at_ns - gap.us * 1e3, start_ns), min(gap.at_ns, end_ns)) for gap in pauses.gaps]
    found = [(end - begin) / 1e3 for begin, end in spans if end > begin]
    oldest_ns = min((gap.at_ns for gap in pauses.gaps), default=start_ns)
    if not pauses.forgotten or not start_ns < oldest_ns < end_ns:
        return found
    return found * math.ceil((end_ns - start_ns) / (end_ns - oldest_ns))


def taker_among(times: Mapping[str, float], total: float) -> str:
    """The thread with most of the time; '' if it had less than half of the total, or is not known."""
    who = max(times, key=lambda name: times[name], default="")
    return who if who and times[who] >= total / 2 else ""


def taken_by(gaps: Sequence[WorkerPause], events: Sequence[Event]) -> str:
    """The thread that had the cores of the stalled workers for most of their stalls; '' if none had them for half of it."""
    times: dict[str, float] = {}
    for gap in gaps:
        for event in (one for one in events if one.what == "switch" and one.core == gap.core and not one.is_elsewhere):
            begin_ns = max(gap.at_ns - gap.us * 1e3, event.at_ns - event.us * 1e3)
            shared_us = (min(gap.at_ns, event.at_ns) - begin_ns) / 1e3
            times[event.who] = times.get(event.who, 0.0) + max(0.0, shared_us)
    return taker_among(times, sum(gap.us for gap in gaps))


def stalled_of(
    results: Results, pauses: Pauses | None, facts: Mapping[str, object], events: Sequence[Event]
) -> Stalled:
    """What the stalls of a trial can have cost it. Without their times, the polls that found the ring full count."""
    counts, line = Counts.of(results), results.timeline
    ports = {stream.to_port for stream in results.streams}
    least_us = bridged_us(ring_of(facts), counts.rate_pps(0.0), len(ports))
    found: list[float] = []
    who = ""
    if pauses and line:
        end_ns = line.start_ns + round(results.seconds * 1e9) + DRAIN_NS
        found = [us for us in lengths_us(pauses, line.start_ns, end_ns) if us >= least_us]
        if found:
            who = taken_by([gap for gap in pauses.gaps if gap.us >= least_us and gap.at_ns > line.start_ns], events)
    sinks = [port for port in results.ports if port.name in ports]
    if not found:
        found = [port.longest_gap_us for port in sinks for _ in range(port.late_polls)]
    us = min(sum(found), results.seconds * 1e6)
    missed = sum(port.rx_missed or 0 for port in sinks)
    has_cost = not counts.asked_pps or counts.late or missed or any(port.late_polls for port in sinks)
    missing = counts.missing if counts.asked_pps else None
    return Stalled(
        n=len(found),
        us=us,
        longest_us=max(found, default=0.0),
        frames=most_frames(us, counts.rate_pps(us), missing) if has_cost else 0,
        who=who,
    )


def by_whom(who: str) -> str:
    """The cause of stalls, as a part of a sentence; '' if it is not known."""
    return f", mostly because {who} had its core" if who else ""


def words_of(stalled: Stalled) -> str:
    """The stalls, as the beginning of a sentence."""
    by = by_whom(stalled.who)
    return f"the generator stalled {stalled.n:,} times for up to {stalled.longest_us:,.0f} us{by}"


def is_open(stalled: Stalled, counts: Counts, goals: Sequence[float]) -> bool:
    """Whether stalls decide if one of the goals was met: without the frames that they can have cost it was, with them not."""
    if not counts.sent:
        return False
    least, most = max(0, counts.lost - stalled.frames) / counts.sent, counts.lost / counts.sent
    return any(least <= goal < most for goal in goals)


def share_of(stalled: Stalled, counts: Counts) -> float:
    """The frames that stalls can have cost, relative to those that came back."""
    return stalled.frames / counts.received if counts.received else 0.0


def most_error(order: Order) -> float:
    """The share of its frames that stalls may have cost a trial that counts."""
    if order.surplus or order.test == "reset":
        return 0.0  # the time of a loss is the result
    return math.inf if order.test == "throughput" and order.goals else MOST_SHARE  # only the verdict is used


def stall_sentences(stalled: Stalled, counts: Counts, goals: Sequence[float], most: float) -> Iterator[str]:
    """Why a trial does not count because of stalls. A trial that lost nothing of what was asked for always counts.

    Where goals are decided, the verdict must be the same with and without the frames that the stalls can have cost. Loss
    and rate are exact except for these frames, so they must be a small share.
    """
    if not stalled.frames:
        return
    if is_open(stalled, counts, goals):
        yield (
            f"stalls: {words_of(stalled)}; they can have cost {stalled.frames:,} of the {counts.lost:,} lost frames, so "
            "the loss of the device is not known"
        )
    elif share_of(stalled, counts) > most:
        yield (
            f"stalls: {words_of(stalled)}; they can have cost {stalled.frames:,} frames "
            f"({share_of(stalled, counts):.2%}), more than {most:.0%}"
        )


def late_in(stalled: Stalled, counts: Counts) -> int:
    """The frames that were due in the stalls."""
    return most_frames(stalled.us, counts.asked_pps)


def share_of_time(stalled: Stalled, counts: Counts) -> float:
    """The part of the trial in which the generator stalled."""
    return stalled.us / 1e6 / counts.seconds if counts.seconds else 0.0


def held_frames(counts: Counts, latency_ns: float) -> int:
    """Frames that were still in the device when a trial that is shorter because of stalls ended.

    Rings hide an overload for a moment, so a short trial loses nothing at a rate at which a longer one would. The time
    that frames spent in the device shows it. With a requested rate, what is within the usual error is no overload.
    """
    held_s = latency_ns / 1e9
    if not counts.seconds or (counts.asked_pps and held_s <= MOST_SHARE * counts.seconds):
        return 0
    return round(counts.received * held_s / (counts.seconds + held_s))
