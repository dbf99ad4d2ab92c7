"""What the lanes of dl3d did in a trial: the difference between two answers to 'lanes'."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dl3.control.client import Client
from dl3.control.linux import Mirror
from dl3.control.replies import Lane, Lanes, Ports
from dl3.model.evidence import Evidence, Work
from dl3.model.fault import Fault
from dl3.model.trial import Trial

COUNTED = ("bursts", "loops", "empty_loops")


def rise(before: Lane, after: Lane, name: str) -> int:
    """By how much a counter of a lane rose."""
    return after.counters.get(name, 0) - before.counters.get(name, 0)


def cycles(lane: Lane) -> dict[str, float]:
    """Of all frames that were timed, by step."""
    timed = lane.counters.get("timed_packets", 0)
    return {step: each * timed for step, each in (lane.cycles_per_packet or {}).items()}


def queues(before: Lane, after: Lane) -> dict[str, int]:
    """Packets that came from each queue."""
    old = {(queue.port, queue.queue): queue.rx_packets for queue in before.queues}
    return {f"{q.port}/{q.queue}": q.rx_packets - old.get((q.port, q.queue), 0) for q in after.queues}


def work_of(before: Lane, after: Lane, tsc_hz: float) -> Work:
    """Of one lane."""
    timed, old = rise(before, after, "timed_packets"), cycles(before)
    return Work(
        lane=after.lane,
        core=after.core,
        tsc_hz=tsc_hz,
        queues=queues(before, after),
        packets=sum(after.verdicts.values()) - sum(before.verdicts.values()),
        **{name: rise(before, after, name) for name in COUNTED},
        cycles_per_packet={
            step: round(max(0.0, spent - old.get(step, 0.0)) / timed, 2) for step, spent in cycles(after).items()
        }
        if timed > 0
        else {},
    )


def work_between(before: Lanes, after: Lanes) -> tuple[Work, ...]:
    """Of each lane; nothing when dl3d was started again in between."""
    old = {lane.lane: lane for lane in before.lanes}
    pairs = [(old[lane.lane], lane) for lane in after.lanes if lane.lane in old]
    if any(rise(first, last, "loops") < 0 for first, last in pairs):
        return ()
    return tuple(work_of(first, last, after.tsc_hz) for first, last in pairs)


@dataclass
class Worked:
    """What dl3d did, once it is over."""

    work: tuple[Work, ...] = ()
    ring_frames: int = 0
    round_s: float = 0.0  # that one round of a lane took in the mean, pauses included; 0: unknown
    messages: int | None = None  # of Linux, that dl3d's mirror heard; None: it has no mirror

    def beside(self, trial: Trial) -> Trial:
        """The trial with it; as it is, when the device does not tell."""
        if not self.work:
            return trial
        evidence = trial.evidence or Evidence()
        heard = {} if self.messages is None else {"netlink messages": float(self.messages)}
        more = {"work": self.work, "ring_frames": self.ring_frames, "totals": {**evidence.totals, **heard}}
        return trial.model_copy(update={"evidence": evidence.model_copy(update=more)})


def round_s_of(work: Sequence[Work], seconds: float) -> float:
    """How long a lane's round took in the mean, of all that lanes made in so many seconds; 0 where there was none."""
    loops = sum(lane.loops for lane in work)
    return seconds * len(work) / loops if loops else 0.0


def messages_of(dut: Client) -> int | None:
    """How many dl3d's mirror has heard so far."""
    with suppress(Fault):
        return dut.ask(Mirror, "mirror").messages
    return None


def ring_of(dut: Client) -> int:
    """Frames that the smallest receive queue holds; 0: unknown."""
    return min((port.rx_descriptors for port in dut.ask(Ports, "ports").ports), default=0)


@contextmanager
def working(dut: Client | None) -> Iterator[Worked]:
    """Ask the lanes before and after."""
    worked = Worked()
    if not dut:
        yield worked
        return
    before, heard, began_s = dut.ask(Lanes, "lanes"), messages_of(dut), time.monotonic()
    yield worked
    with suppress(Fault):  # a trial may have ended it
        worked.work = work_between(before, dut.ask(Lanes, "lanes"))
        worked.round_s = round_s_of(worked.work, time.monotonic() - began_s)
        worked.ring_frames, now_heard = ring_of(dut), messages_of(dut)
        worked.messages = None if heard is None or now_heard is None else now_heard - heard
