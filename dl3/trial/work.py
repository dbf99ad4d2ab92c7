"""Statistics of dl3d's workers over a trial: the difference between two replies to 'workers'."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dl3.control.client import Client
from dl3.control.linux import Burst, Mirror
from dl3.control.replies import Port, Ports, Worker, Workers
from dl3.model.evidence import Event, Evidence, Work
from dl3.model.fault import Fault
from dl3.model.trial import Trial
from dl3.trial.order import Site
from dl3.trial.seen import uncounted

COUNTED = ("bursts", "loops", "empty_loops")
OF_FLOWS = "flow_packets"
MOST_BURSTS = 256  # bursts of netlink messages: NETLINK_BURSTS in src/netlink/netlink.h


def rise(before: Worker, after: Worker, name: str) -> int:
    """Increase of a worker's counter."""
    return after.counters.get(name, 0) - before.counters.get(name, 0)


def cycles(worker: Worker) -> dict[str, float]:
    """Total cycles of all timed frames, by step."""
    timed = worker.counters.get("timed_packets", 0)
    return {step: each * timed for step, each in (worker.cycles_per_packet or {}).items()}


def queues(before: Worker, after: Worker) -> dict[str, int]:
    """Packets received from each queue."""
    old = {(queue.port, queue.queue): queue.rx_packets for queue in before.queues}
    return {f"{q.port}/{q.queue}": q.rx_packets - old.get((q.port, q.queue), 0) for q in after.queues}


def work_of(before: Worker, after: Worker, tsc_hz: float) -> Work:
    """Statistics of one worker."""
    timed, old = rise(before, after, "timed_packets"), cycles(before)
    return Work(
        worker=after.worker,
        core=after.core,
        tsc_hz=tsc_hz,
        queues=queues(before, after),
        packets=sum(after.verdicts.values()) - sum(before.verdicts.values()),
        flow_packets=rise(before, after, OF_FLOWS) if OF_FLOWS in after.counters else None,
        **{name: rise(before, after, name) for name in COUNTED},
        cycles_per_packet={
            step: round(max(0.0, spent - old.get(step, 0.0)) / timed, 2) for step, spent in cycles(after).items()
        }
        if timed > 0
        else {},
    )


def work_between(before: Workers, after: Workers) -> tuple[Work, ...]:
    """Statistics of each worker; empty if dl3d was restarted in between."""
    old = {worker.worker: worker for worker in before.workers}
    pairs = [(old[worker.worker], worker) for worker in after.workers if worker.worker in old]
    if any(rise(first, last, "loops") < 0 for first, last in pairs):
        return ()
    return tuple(work_of(first, last, after.tsc_hz) for first, last in pairs)


def on_in(bursts: Sequence[Burst], trial: Trial, ahead_ns: int | None) -> tuple[Event, ...]:
    """Bursts of netlink messages while frames were due. `ahead_ns`: clock offset of the other machine."""
    if not trial.timeline:
        return ()
    begin_ns, line = trial.timeline.start_ns, trial.timeline
    end_ns = begin_ns + line.bucket_ns * len(line.sent)
    by_ours = ((one.at_ns - (ahead_ns or 0), one) for one in bursts)
    found = [
        Event(
            what="netlink", at_ns=at_ns, us=one.us, core=-1, who=f"{one.messages:,}", is_elsewhere=ahead_ns is not None
        )
        for at_ns, one in by_ours
        if at_ns > begin_ns and at_ns - one.us * 1e3 < end_ns
    ]
    return tuple(found)


def unheard(bursts: Sequence[Burst], trial: Trial, ahead_ns: int | None) -> tuple[str, ...]:
    """State that dl3d no longer has the bursts from the start of the trial."""
    oldest_ns = min((one.at_ns - (ahead_ns or 0) for one in bursts), default=0)
    if len(bursts) < MOST_BURSTS or not trial.timeline or oldest_ns <= trial.timeline.start_ns:
        return ()
    return (
        f"dl3d records the {MOST_BURSTS} latest bursts of netlink messages: those before {oldest_ns} ns are missing",
    )


@dataclass
class Worked:
    """Statistics of dl3d, available when the context has ended."""

    work: tuple[Work, ...] = ()
    ports: tuple[Port, ...] = ()
    round_s: float = 0.0  # mean duration of a worker's round, pauses included; 0: unknown
    messages: int | None = None  # netlink messages received by dl3d; None: it mirrors no kernel state
    bursts: tuple[Burst, ...] = ()  # bursts of these and of earlier messages
    ahead_ns: int | None = None  # how far dl3d's clock is ahead of the local one; None: same clock

    def beside(self, trial: Trial) -> Trial:
        """Add the statistics to a trial; unchanged if the device provides none."""
        if not self.work:
            return trial
        evidence = trial.evidence or Evidence()
        heard = {} if self.messages is None else {"netlink messages": float(self.messages)}
        events = (*evidence.events, *on_in(self.bursts, trial, self.ahead_ns))
        more = {"work": self.work, "ring_frames": ring_of(self.ports), "totals": {**evidence.totals, **heard}}
        missing = (*unheard(self.bursts, trial, self.ahead_ns), *uncounted("dl3d", self.ports))
        more["missing"] = (*evidence.missing, *missing)
        in_order = tuple(sorted(events, key=lambda event: event.at_ns))
        return trial.model_copy(update={"evidence": evidence.model_copy(update={**more, "events": in_order})})


def round_s_of(work: Sequence[Work], seconds: float) -> float:
    """Mean duration of a worker's round over an interval of `seconds`; 0 if there were no rounds."""
    loops = sum(worker.loops for worker in work)
    return seconds * len(work) / loops if loops else 0.0


def mirror_of(dut: Client) -> Mirror | None:
    """State of dl3d's mirror; None if it has none."""
    with suppress(Fault):
        return dut.ask(Mirror, "mirror")
    return None


def ring_of(ports: Sequence[Port]) -> int:
    """Capacity of the smallest receive queue in frames; 0: unknown."""
    return min((port.rx_descriptors for port in ports), default=0)


@contextmanager
def working(site: Site) -> Iterator[Worked]:
    """Read dl3d's worker statistics before and after."""
    worked, dut = Worked(ahead_ns=site.far_ahead_ns), site.dut
    if not dut:
        yield worked
        return
    before, heard, began_s = dut.ask(Workers, "workers"), mirror_of(dut), time.monotonic()
    yield worked
    with suppress(Fault):  # the trial may have ended dl3d
        worked.work = work_between(before, dut.ask(Workers, "workers"))
        worked.round_s = round_s_of(worked.work, time.monotonic() - began_s)
        worked.ports, now_heard = dut.ask(Ports, "ports").ports, mirror_of(dut)
        if heard and now_heard:
            worked.messages, worked.bursts = now_heard.messages - heard.messages, now_heard.bursts
