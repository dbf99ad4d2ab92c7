"""One trial and the answer of a search, as they are measured, recorded and reported."""

from collections.abc import Mapping
from typing import Literal

from pydantic import model_validator

from dl3.model.evidence import Evidence, Timeline
from dl3.model.noun import Noun

LAYER1_BYTES = 20  # preamble and gap of a frame on the wire
Limit = Literal["dut", "generator", "line", "asked"]  # what keeps a search from going higher
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
    "free",
]


def wire_of(facts: Mapping[str, object]) -> str:
    """What joins the generator to the device: 'memif', 'veth', 'ports of the file'; '' where the facts do not say."""
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
    """All streams of a trial together. sent = received + lost; lost frames by place, as far as it is known."""

    sent: int
    received: int
    lost: int
    duplicated: int
    reordered: int
    reordered_per: str  # 'flow', 'stream', or both joined by ' and '
    corrupted: int
    late: int
    busy: int = 0  # of late: the generator's port took no more, as without a link
    sent_bytes: int
    received_bytes: int
    lost_by_place: dict[str, int]  # 'dut rx ring full', 'corrupted', names of dl3d's drops, 'unknown'


class Trial(Noun):
    """One run at one load. An INVALID trial has reasons, and says nothing about the device under test."""

    kind: Literal["trial"] = "trial"
    at: str
    campaign: str  # groups the trials of one command: its start, in UTC
    test: Test
    dut: str
    frame: str  # '64', '1518', 'imix', 'classic', 'capture'
    mean_bytes: float  # with FCS
    asked_pps: float  # all streams together; 0: as fast as can be
    offered_pps: float
    received_pps: float
    seconds: float
    pacing_error: float  # (offered - asked) / asked
    invalid: tuple[str, ...]
    is_behind: bool = False  # INVALID because the generator or its sink could not keep up at this load
    account: Account
    latency: Spread  # from the time a frame was due
    latency_from_sending: Spread
    jitter_mean: float
    jitter_max: float
    last_lost_s: float | None = None  # when the last lost frame was due, from the first one's time; None: none was
    longest_silence_s: float = 0.0  # between two frames of a stream received one after the other
    longest_outage_s: float = 0.0  # between two frames of a stream received, of which others in between were lost
    load: float | None = None  # share of the throughput at which a latency trial ran
    job: str = ""  # the job of a campaign that it belongs to, see dl3.model.campaign
    streams: tuple[dict[str, object], ...] = ()  # as they were sent, seeds included: a trial can be made again
    timeline: Timeline | None = None
    evidence: Evidence | None = None
    facts: dict[str, object]

    @property
    def loss_ratio(self) -> float:
        """Lost / sent."""
        return self.account.lost / self.account.sent if self.account.sent else 0.0


class Throughput(Noun):
    """The answer of one search: the highest rate at which a trial lost no more than the goal allows."""

    kind: Literal["throughput"] = "throughput"
    at: str
    campaign: str
    dut: str
    frame: str
    mean_bytes: float
    pps: float  # as offered in the best trial; all streams together
    upper_pps: float | None  # the lowest rate at which a valid trial missed the goal; None: none above `pps` did
    ended_pps: float = 0.0  # the lowest rate that failed, be it for the generator, or the bound of the search
    limited_by: Limit
    goal_loss_ratio: float
    resolution: float
    trial_seconds: float
    repetitions: int
    n_trials: int
    n_invalid: int
    line_bps: float  # layer 1, all ports that send; 0: unknown
    job: str = ""
    method: Literal["binary", "mlrsearch"] = "binary"
    exceed_ratio: float = 0.0  # share of trial time that may lose more than the goal (RFC 9971); 0 for binary search
    conditional_pps: float | None = None  # RFC 9971's conditional throughput: what came back at the lower bound
    repeats_pps: tuple[float, ...] = ()  # the answers of whole searches again; pps is their median then
    interval_pps: tuple[float, float] | None = None  # where the answer lies with 95 % confidence
    passed_pps: float = 0.0  # the highest rate at which any trial of full length passed, be it above the answer
    noise: tuple[str, ...] = ()  # why the machine was noisy; the answer is a range then, not a number
    search_seconds: float = 0.0  # of trials that it took, for all goals of the search
    facts: dict[str, object]

    @model_validator(mode="before")
    @classmethod
    def split_upper(cls, values: dict[str, object]) -> dict[str, object]:
        """Old records have one rate for both, where the search ended: that of the device where it was the limit."""
        if "ended_pps" in values or "upper_pps" not in values:
            return values
        upper_pps = values["upper_pps"]
        is_of_dut = values.get("limited_by") == "dut"
        return {**values, "upper_pps": upper_pps if is_of_dut else None, "ended_pps": upper_pps}

    @property
    def l1_bps(self) -> float:
        """Bits on the wire a second, preamble and gap included."""
        return self.pps * (self.mean_bytes + LAYER1_BYTES) * 8

    @property
    def too_high_pps(self) -> float | None:
        """The upper bound where it lies above the answer: between the two is the limit of the device."""
        return self.upper_pps if self.upper_pps is not None and self.upper_pps > self.pps else None

    @property
    def range_pps(self) -> tuple[float, float] | None:
        """From where to where the answer lies on a machine that was noisy; None where it is a number."""
        if not self.noise:
            return None
        low, high = self.interval_pps or (self.pps, max(self.upper_pps or 0.0, self.passed_pps))
        return (low, high) if low < high else None

    @property
    def line_share(self) -> float | None:
        """Share of the line rate; None where the line has none."""
        return self.l1_bps / self.line_bps if self.line_bps else None
