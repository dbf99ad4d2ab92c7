"""A trial and the result of a search, as measured, recorded and reported."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import model_validator

from dl3.model.evidence import Evidence, Stalled, Timeline
from dl3.model.noun import Noun

LAYER1_BYTES = 20  # preamble and inter-frame gap
Limit = Literal["dut", "generator", "line", "asked"]  # what limited the search
Test = Literal[
    "throughput",
    "latency",
    "frame loss",
    "back-to-back",
    "recovery",
    "reset",
    "forwarding",
    "proof",
    "ceiling",
    "shaping",
    "free",
]


def wire_of(facts: Mapping[str, object]) -> str:
    """What connects the generator to the device: 'memif', 'veth', 'ports of the file'; '' if the facts do not include
    it.
    """
    lab = facts.get("lab")
    wire = lab.get("wire") if isinstance(lab, Mapping) else None
    return wire if isinstance(wire, str) else ""


class Spread(Noun):
    """A distribution of times in nanoseconds."""

    n: int = 0
    min: float = 0
    mean: float = 0
    p50: float = 0
    p90: float = 0
    p99: float = 0
    p99_9: float = 0
    p99_99: float = 0
    p99_999: float = 0
    max: float = 0


class Account(Noun):
    """Packet accounting over all streams of a trial. sent = received + lost; lost frames by place, where known."""

    sent: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    reordered_per: str  # 'flow', 'stream', or both joined by ' and '
    corrupted: int
    late: int
    busy: int = 0  # part of `late`: the generator's port accepted no more frames, for example without a link
    sent_bytes: int
    received_bytes: int
    lost_by_place: dict[str, int]  # 'dut rx ring full', 'corrupted', drop counters of dl3d, 'unknown'


class Trial(Noun):
    """One run at one load. An INVALID trial has reasons and is not evidence about the device under test."""

    kind: Literal["trial"] = "trial"
    at: str
    campaign: str  # groups the trials of one command: its start time, in UTC
    test: Test
    dut: str
    frame: str  # '64', '1518', 'imix', 'classic', 'capture'
    mean_bytes: float  # including the FCS
    asked_pps: float  # sum over all streams; 0: as fast as possible
    offered_pps: float
    received_pps: float
    seconds: float
    pacing_error: float  # (offered - asked) / asked
    invalid: tuple[str, ...]
    is_behind: bool = False  # INVALID because the generator or its sink could not keep up with the load
    is_stalled: bool = False  # INVALID only because of stalls of the generator: a shorter trial may be valid
    stalled: Stalled | None = None  # what these stalls can have cost; None: an older record
    ordered_s: float = 0.0  # the duration that was ordered, if the trial is shorter because of stalls; 0: as ordered
    held: int = 0  # frames of such a trial that the device still held at its end: a longer trial would have lost them
    account: Account
    latency: Spread  # measured from the due time of the frame
    latency_from_sending: Spread
    jitter_mean: float
    jitter_max: float
    last_lost_s: float | None = None  # due time of the last lost frame, relative to the first frame; None: no loss
    longest_silence_s: float = 0.0  # longest interval between consecutive received frames of a stream
    longest_outage_s: float = 0.0  # longest interval between received frames of a stream with lost frames in between
    load: float | None = None  # fraction of the throughput, in latency trials
    job: str = ""  # campaign job it belongs to, see dl3.model.campaign
    streams: tuple[dict[str, object], ...] = ()  # as sent, including seeds, so that the trial can be repeated
    timeline: Timeline | None = None
    evidence: Evidence | None = None
    facts: dict[str, object]

    @property
    def loss_ratio(self) -> float:
        """Lost frames divided by sent frames; those that a short trial left in the device's buffers count as lost."""
        return (self.account.lost + self.held) / self.account.sent if self.account.sent else 0.0

    @property
    def n_stalls(self) -> int:
        """Stalls of the generator that no ring bridged."""
        return self.stalled.n if self.stalled else 0

    @property
    def error_share(self) -> float:
        """The frames that stalls of the generator can have cost, divided by those that came back."""
        return self.stalled.frames / self.account.received if self.stalled and self.account.received else 0.0


def interrupted(trials: Sequence[Trial]) -> list[Trial]:
    """Trials in which the generator fell behind at rates that it reached in others of them."""
    reached_pps = max((trial.asked_pps for trial in trials if not trial.invalid), default=0.0)
    return [trial for trial in trials if trial.is_behind and 0 < trial.asked_pps <= reached_pps]


class Throughput(Noun):
    """Result of one search: the highest rate at which a trial lost no more than the goal allows."""

    kind: Literal["throughput"] = "throughput"
    at: str
    campaign: str
    dut: str
    frame: str
    mean_bytes: float
    pps: float  # offered load of the best trial; sum over all streams
    upper_pps: float | None  # lowest rate at which a valid trial missed the goal; None: no such rate above `pps`
    ended_pps: float = 0.0  # lowest rate that failed for any reason, generator included, or the search's upper bound
    limited_by: Limit
    goal_loss_ratio: float
    resolution: float
    trial_seconds: float
    repetitions: int
    n_trials: int  # of all goals and repeated searches; ceiling trials count only where there are no others
    n_invalid: int
    line_bps: float  # layer 1, all sending ports; 0: unknown
    job: str = ""
    method: Literal["binary", "mlrsearch"] = "binary"
    exceed_ratio: float = 0.0  # share of trial time that may exceed the loss goal (RFC 9971); 0 for binary search
    conditional_pps: float | None = None  # RFC 9971's conditional throughput: received rate at the lower bound
    repeats_pps: tuple[float, ...] = ()  # results of repeated searches; pps is then their median
    interval_pps: tuple[float, float] | None = None  # 95 % confidence interval of the result
    passed_pps: float = 0.0  # highest rate at which any full-length trial passed, even if above the result
    noise: tuple[str, ...] = ()  # reasons why the machine was noisy; the result is then a range rather than a number
    stall_error: float = 0.0  # share of the frames that stalls can have cost the trial of this result; widens the range
    search_seconds: float = 0.0  # total trial time of the search, for all its goals
    facts: dict[str, object]

    @model_validator(mode="before")
    @classmethod
    def split_upper(cls, values: dict[str, object]) -> dict[str, object]:
        """Old records have one rate for both, where the search ended: the device's if it was the limit."""
        if "ended_pps" in values or "upper_pps" not in values:
            return values
        upper_pps = values["upper_pps"]
        is_of_dut = values.get("limited_by") == "dut"
        return {**values, "upper_pps": upper_pps if is_of_dut else None, "ended_pps": upper_pps}

    @property
    def l1_bps(self) -> float:
        """Layer 1 bit rate, including preamble and inter-frame gap."""
        return self.pps * (self.mean_bytes + LAYER1_BYTES) * 8

    @property
    def too_high_pps(self) -> float | None:
        """The upper bound if it is above the result: the limit of the device is between the two."""
        return self.upper_pps if self.upper_pps is not None and self.upper_pps > self.pps else None

    @property
    def range_pps(self) -> tuple[float, float] | None:
        """The range of the result on a noisy machine; None where it is a single number."""
        if not self.noise:
            return None
        low, high = self.interval_pps or (self.pps, max(self.upper_pps or 0.0, self.passed_pps))
        low, high = low * (1 - self.stall_error), high * (1 + self.stall_error)
        return (low, high) if low < high else None

    @property
    def line_share(self) -> float | None:
        """Share of the line rate; None if the line rate is unknown."""
        return self.l1_bps / self.line_bps if self.line_bps else None
