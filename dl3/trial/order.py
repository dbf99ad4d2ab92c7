"""The parameters of a trial and the programs that take part in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dl3.control.client import Client
from dl3.model.stream import Stream, shares
from dl3.model.trial import Test

LOSSLESS = (0.0,)  # goals of a trial that shows whether anything is lost


@dataclass(frozen=True)
class Site:
    """The programs that take part: a dl3gen, and a dl3d whose accounting is checked if it is the device under test."""

    generator: Client
    dut: Client | None = None
    dut_name: str = "dl3d"
    campaign: str = ""  # groups the trials of one command: its start time, in UTC
    facts: Mapping[str, object] = field(default_factory=dict)  # of machine and build, stored with each trial
    far_ahead_ns: int | None = None  # for dl3d on another machine: how far its CLOCK_MONOTONIC is ahead of ours

    @property
    def is_far(self) -> bool:
        """Whether dl3d is on another machine."""
        return self.far_ahead_ns is not None


@dataclass(frozen=True)
class Surplus:
    """Additional load from the first frame on; when it ends, the base load continues without a gap."""

    pps: float
    seconds: float


@dataclass(frozen=True)
class Order:
    """One load for one duration, summed over all streams."""

    streams: tuple[Stream, ...]
    frame: str  # '64', 'imix'
    pps: float  # 0: as fast as possible
    seconds: float
    test: Test = "free"
    load: float | None = None  # fraction of the throughput
    warm_up_s: float = 0.2
    job: str = ""  # of a campaign
    frames: int = 0  # exact number of frames, however long they take; 0: limited by time
    surplus: Surplus | None = None
    is_explained: bool = False  # keep timeline and evidence even without loss
    goals: tuple[float, ...] = ()  # loss ratios that the trial decides about; empty: its loss or rate is the result
    ordered_s: float = 0.0  # the duration wanted, if this is a shorter trial because of stalls

    @property
    def asked_pps(self) -> float:
        """Requested rate at the start of the trial."""
        return self.pps + (self.surplus.pps if self.surplus else 0.0)

    def written(self) -> list[dict[str, object]]:
        """The streams in the form expected by dl3gen's method 'send'."""
        if not self.surplus:
            return self._part(self.pps, self.frames)
        frames = round(self.surplus.pps * self.surplus.seconds)
        more = [
            {**written, "name": f"{stream.name or f'stream{i}'}-more"}
            for i, (stream, written) in enumerate(zip(self.streams, self._part(self.surplus.pps, frames), strict=True))
        ]
        return [
            {key: value for key, value in stream.items() if key != "id"} for stream in (*self._part(self.pps), *more)
        ]

    def _part(self, pps: float, frames: int = 0) -> list[dict[str, object]]:
        """All streams, sharing a total rate, with `frames` frames in total or unlimited (0)."""
        parts = zip(self.streams, shares(self.streams), strict=True)
        written = [(stream.at(self.frame, pps * share).written(), share) for stream, share in parts]
        return [{**stream, "frames": max(1, round(frames * share))} if frames else stream for stream, share in written]
