"""What the machine and the programs did while a trial ran, on one clock, so that loss can be laid beside it."""

from typing import Literal

from pydantic import Field

from dl3.model.noun import Noun

OF_THE_OTHER = "of the other machine"  # ends the name of a total that was counted there
What = Literal["switch", "interrupt", "steal", "page fault", "netlink", "frequency"]


class Loss(Noun):
    """Frames lost one after the other, as far as dl3gen's own buckets tell: some of those due in that time were."""

    at_ns: int  # CLOCK_MONOTONIC, of its end
    us: float
    frames: int


class Timeline(Noun):
    """Frames of all streams by the time at which each was due: sent[i] - received[i] were lost in bucket i."""

    start_ns: int  # CLOCK_MONOTONIC, of the first bucket's beginning
    bucket_ns: int
    sent: tuple[int, ...]
    received: tuple[int, ...]
    losses: tuple[Loss, ...] = ()  # at a finer resolution than the buckets; the largest ones, in the order of time


class Gap(Noun):
    """A pause of a worker, as src/stats/pauses.h has it: it emptied no ring for longer than its frames explain."""

    program: Literal["dl3d", "dl3gen"]
    worker: int
    core: int
    at_ns: int  # CLOCK_MONOTONIC, of its end
    us: float  # the whole time, what its frames explain included
    is_elsewhere: bool = False  # on the other machine of the laboratory; its clock is laid over ours


class Event(Noun):
    """Something that the machine did on a core."""

    what: What
    at_ns: int  # CLOCK_MONOTONIC, of its end where it has a length
    us: float  # 0: it has no length
    core: int  # -1: none or all
    who: str  # 'kworker/3:1', 'timer'; of netlink how many messages: '1,200'
    is_elsewhere: bool = False


class Work(Noun):
    """What a worker of dl3d did in a trial."""

    worker: int
    core: int
    tsc_hz: float
    packets: int
    bursts: int
    loops: int
    empty_loops: int
    cycles_per_packet: dict[str, float] = Field(default_factory=dict)  # by step, in the bursts that were timed
    queues: dict[str, int] = Field(default_factory=dict)  # packets received from each, by 'port/queue'


class Evidence(Noun):
    """Of one trial, from before its first frame to after its last."""

    gaps: tuple[Gap, ...] = ()  # the longest ones, in the order of time
    events: tuple[Event, ...] = ()  # on the workers' cores; the longest ones, in the order of time
    totals: dict[str, float] = Field(
        default_factory=dict
    )  # 'switches core 1', 'interrupts core 1', 'steal ms core 1', 'page faults dl3d', ...
    missing: tuple[str, ...] = ()  # one sentence for each kind of evidence that this machine does not give
    work: tuple[Work, ...] = ()  # of each worker of dl3d
    ring_frames: int = 0  # that a receive queue of the device holds; 0: unknown

    def total(self, what: str, core: int, is_elsewhere: bool) -> float | None:
        """What was counted on a core, 'steal ms' say; None: that was not seen."""
        return self.totals.get(f"{what} core {core}{f' {OF_THE_OTHER}' if is_elsewhere else ''}")
