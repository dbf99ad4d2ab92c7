"""What one trial is to be, and where."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dl3.control.client import Client
from dl3.model.stream import Stream, shares
from dl3.model.trial import Test


@dataclass(frozen=True)
class Site:
    """Who takes part: a dl3gen, and the dl3d whose account is checked when it is one that is tested."""

    generator: Client
    dut: Client | None = None
    dut_name: str = "dl3d"
    campaign: str = ""  # groups the trials of one command: its start, in UTC
    facts: Mapping[str, object] = field(default_factory=dict)  # of machine and build, kept with each trial
    far_ahead_ns: int | None = None  # dl3d is on another machine, whose CLOCK_MONOTONIC is so far ahead of ours

    @property
    def is_far(self) -> bool:
        """Whether dl3d is on another machine."""
        return self.far_ahead_ns is not None


@dataclass(frozen=True)
class Surplus:
    """What is offered on top, from the first frame on; when it ends, the rest goes on without a gap."""

    pps: float
    seconds: float


@dataclass(frozen=True)
class Order:
    """One load for one time; all streams together."""

    streams: tuple[Stream, ...]
    frame: str  # '64', 'imix'
    pps: float  # 0: as fast as can be
    seconds: float
    test: Test = "free"
    load: float | None = None  # share of the throughput
    warm_up_s: float = 0.2
    job: str = ""  # of a campaign
    frames: int = 0  # so many and no more, however long that takes; 0: as long as the time lasts
    surplus: Surplus | None = None
    is_explained: bool = False  # timeline and evidence are kept in any case, not only beside loss

    @property
    def asked_pps(self) -> float:
        """At the beginning."""
        return self.pps + (self.surplus.pps if self.surplus else 0.0)

    def written(self) -> list[dict[str, object]]:
        """The streams as dl3gen's method 'send' takes them."""
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
        """All streams at a rate that they share; so many frames in all, or as many as come."""
        parts = zip(self.streams, shares(self.streams), strict=True)
        written = [(stream.at(self.frame, pps * share).written(), share) for stream, share in parts]
        return [{**stream, "frames": max(1, round(frames * share))} if frames else stream for stream, share in written]
