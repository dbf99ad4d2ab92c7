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

    def written(self) -> list[dict[str, object]]:
        """The streams as dl3gen's verb 'send' takes them."""
        parts = zip(self.streams, shares(self.streams), strict=True)
        return [stream.at(self.frame, self.pps * share).written() for stream, share in parts]
