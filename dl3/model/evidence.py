"""Activity of the machine and the programs during a trial, on one clock, for correlation with frame loss."""

from typing import Literal

from pydantic import Field

from dl3.model.noun import Noun

OF_THE_OTHER = "of the other machine"  # suffix of totals that were counted on the other machine
What = Literal["switch", "interrupt", "steal", "page fault", "netlink", "frequency"]


class Loss(Noun):
    """A period of consecutive loss, at the resolution of dl3gen's buckets: some of the frames due in it were lost."""

    at_ns: int  # CLOCK_MONOTONIC, end of the period
    us: float
    frames: int


class Timeline(Noun):
    """Frames of all streams by due time: sent[i] - received[i] frames were lost in bucket i."""

    start_ns: int  # CLOCK_MONOTONIC, start of the first bucket
    bucket_ns: int
    sent: tuple[int, ...]
    received: tuple[int, ...]
    losses: tuple[Loss, ...] = ()  # the largest losses in time order, at a finer resolution than the buckets


class Gap(Noun):
    """A stall of a worker, defined in src/stats/stalls.h: it polled no ring for longer than its frames explain."""

    program: Literal["dl3d", "dl3gen"]
    worker: int
    core: int
    at_ns: int  # CLOCK_MONOTONIC, end of the stall
    us: float  # total length, including the time that its frames explain
    is_elsewhere: bool = False  # on the other machine of the testbed; converted to the local clock


class Stalled(Noun):
    """The stalls of the generator that no ring bridged, and what they can have cost a trial, see dl3/trial/stalls.py."""

    n: int = 0
    us: float = 0.0  # total length
    longest_us: float = 0.0
    frames: int = 0  # upper bound of the frames that were lost or not offered because of them
    who: str = ""  # the thread that had the core for most of this time; '': unknown


class Event(Noun):
    """An event of the machine on a core."""

    what: What
    at_ns: int  # CLOCK_MONOTONIC, end of the event if it has a duration
    us: float  # 0: no duration
    core: int  # -1: no core, or all of them
    who: str  # 'kworker/3:1', 'timer'; for netlink the number of messages: '1,200'
    is_elsewhere: bool = False


class Work(Noun):
    """Statistics of one dl3d worker over a trial."""

    worker: int
    core: int
    tsc_hz: float
    packets: int
    flow_packets: int | None = None  # those that had a flow in its flow table; None: an older dl3d does not count them
    bursts: int
    loops: int
    empty_loops: int
    cycles_per_packet: dict[str, float] = Field(default_factory=dict)  # by step, in the bursts that were timed
    queues: dict[str, int] = Field(default_factory=dict)  # packets received per 'port/queue'


class Evidence(Noun):
    """Evidence of one trial, from before the first frame to after the last."""

    gaps: tuple[Gap, ...] = ()  # the longest stalls, in time order
    events: tuple[Event, ...] = ()  # on the workers' cores; the longest ones, in time order
    totals: dict[str, float] = Field(
        default_factory=dict
    )  # 'switches core 1', 'interrupts core 1', 'steal ms core 1', 'page faults dl3d', ...
    missing: tuple[str, ...] = ()  # one sentence per kind of evidence that this machine cannot provide
    work: tuple[Work, ...] = ()  # one entry per worker of dl3d
    ring_frames: int = 0  # capacity of a receive queue of the device; 0: unknown

    def total(self, what: str, core: int, is_elsewhere: bool) -> float | None:
        """A total of one core, such as 'steal ms'; None if it was not recorded."""
        return self.totals.get(f"{what} core {core}{f' {OF_THE_OTHER}' if is_elsewhere else ''}")
