"""Result records of all tests except throughput (see dl3.model.trial). Their trials are recorded before them."""

from typing import Literal

from dl3.model.noun import Noun


class Result(Noun):
    """Fields common to all results."""

    at: str
    campaign: str
    dut: str
    frame: str
    mean_bytes: float  # including the FCS
    job: str = ""
    noise: tuple[str, ...] = ()  # reasons why the machine was noisy
    facts: dict[str, object]


class LossPoint(Noun):
    """The result of a frame loss test at one load."""

    share: float  # fraction of the highest load
    pps: float  # offered load
    loss_ratio: float


class OverLoads(Result):
    """A result with one point per load, from the highest load down."""

    points: tuple[LossPoint, ...]  # one per load that has a valid trial
    invalid_shares: tuple[float, ...] = ()  # loads, as fractions of the highest, at which every trial was INVALID


class FrameLoss(OverLoads):
    """RFC 2544, 26.3: loss over load, from the maximum of line or tester down to two lossless loads in a row."""

    kind: Literal["frame_loss"] = "frame_loss"
    trial_seconds: float


class BackToBack(Result):
    """RFC 2544, 26.4, with RFC 9004: the longest lossless burst at the maximum rate of the line or the tester."""

    kind: Literal["back_to_back"] = "back_to_back"
    burst_pps: float  # the rate within a burst
    bursts: tuple[int, ...]  # longest lossless burst of each repetition, in frames
    frames: float  # mean of `bursts`
    throughput_pps: float  # needed for the corrected buffer time
    implied_buffer_s: float  # frames / burst_pps
    corrected_buffer_s: float  # without the frames that the DUT forwarded during the burst (RFC 9004, 6.4)
    is_at_least: bool = False  # the longest burst that was tried passed as well


class Recovery(Result):
    """RFC 2544, 26.5: time from the drop of the load from 110 % to 50 % of the throughput to the last lost frame."""

    kind: Literal["recovery"] = "recovery"
    overload_pps: float
    recovery_pps: float
    seconds: tuple[float, ...]  # of each repetition; the report shows their mean
    is_at_most: bool = False  # upper bound: the generator skipped frames and their time was added


class Reset(Result):
    """RFC 2544, 26.6: time from the last frame before a reset to the first frame after it."""

    kind: Literal["reset"] = "reset"
    what: Literal["process", "port"]
    offered_pps: float
    seconds: tuple[float, ...]  # of each repetition
    lost: tuple[int, ...]  # frames lost in each repetition; at a known rate this gives the same time


class Forwarding(OverLoads):
    """RFC 2889, 5.1 and 5.2: forwarding rates at the intended loads, FRMOL and MFR."""

    kind: Literal["forwarding"] = "forwarding"
    at_most_offered_pps: float  # forwarding rate at the maximum offered load (FRMOL)
    most_pps: float  # maximum forwarding rate (MFR)
    most_at_pps: float  # the load at which MFR was measured


class ProofPoint(Noun):
    """What the tester measured of itself with one frame size."""

    frame: str
    ceiling_pps: float
    pacing_error: float  # relative, at half the ceiling
    latency_min_ns: float  # at 10 % of the ceiling: the latency floor of the tester
    latency_p50_ns: float
    jitter_mean_ns: float
    invalid: tuple[str, ...] = ()  # reasons why the point is not valid


class Proof(Noun):
    """Self-test: the limits of the tester over the same kind of port as the measurements that follow."""

    kind: Literal["proof"] = "proof"
    at: str
    campaign: str
    wire: str  # 'memif', 'veth', 'ports of the file'
    points: tuple[ProofPoint, ...]
    noise: tuple[str, ...] = ()  # reasons why the machine was noisy; on a quiet machine the ceilings may be higher
    facts: dict[str, object]


class IdleMode(Noun):
    """CPU time, latency and loss of workers with one `idle` setting. Tuples hold one value per round or per step."""

    idle: Literal["poll", "sleep"]
    woken_by: str = ""  # what wakes dl3d's worker: 'frames' or 'time'
    dl3d_shares: tuple[float, ...]  # CPU share of a core that dl3d's worker thread used without traffic
    asleep_shares: tuple[float, ...]  # share of the same time that the worker slept, as counted by dl3d
    dl3gen_shares: tuple[float, ...]  # CPU share of a core that dl3gen's worker thread used between runs
    p50_ns: tuple[float, ...]  # latency at a low rate
    p99_9_ns: tuple[float, ...]
    invalid_latencies: int  # number of these trials that stayed INVALID; their latencies are not included
    pps: tuple[float, ...]  # lossless throughput, one value per round whose search succeeded
    is_at_least: bool  # dl3gen was the limit of a search
    steps_sent: tuple[int, ...]  # frames sent in each valid step
    steps_lost: tuple[int, ...]
    invalid_steps: int


class Idle(Noun):
    """Comparison of dl3d polling with dl3d sleeping while no frame arrives, alternating on the same cores."""

    kind: Literal["idle"] = "idle"
    at: str
    campaign: str
    frame: str
    seconds: float  # length of an observation without traffic, and of a latency trial
    latency_pps: float
    step_pps: float  # a fraction of the lower throughput; 0: no steps, because a throughput is unknown
    step_seconds: float
    quiet_seconds: float  # without frames, before each step
    modes: tuple[IdleMode, ...]
    noise: tuple[str, ...] = ()
    facts: dict[str, object]


class Versus(Result):
    """Two devices under test, measured alternately (ABAB); the ratio is that of the medians."""

    kind: Literal["versus"] = "versus"
    peer: str
    test: str  # 'throughput', ...
    ours_pps: tuple[float, ...]
    peer_pps: tuple[float, ...]
    ratio: float
    interval: tuple[float, float]  # of the ratio, at 95 % confidence
