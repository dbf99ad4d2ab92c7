"""The answers of all tests but throughput (see dl3.model.trial), one record each; their trials stand before them."""

from typing import Literal

from dl3.model.noun import Noun


class Answer(Noun):
    """What all answers have."""

    at: str
    campaign: str
    dut: str
    frame: str
    mean_bytes: float  # with FCS
    job: str = ""
    noise: tuple[str, ...] = ()  # why the machine was noisy
    facts: dict[str, object]


class LossPoint(Noun):
    """One load of a frame loss rate test."""

    share: float  # of the highest load
    pps: float  # as offered
    loss_ratio: float


class OverLoads(Answer):
    """An answer over loads, from the highest down."""

    points: tuple[LossPoint, ...]  # of the loads that have a valid trial
    invalid_shares: tuple[float, ...] = ()  # of the highest load: loads whose trials were all INVALID


class FrameLoss(OverLoads):
    """RFC 2544, 26.3: loss over load, from the line's (or the tester's) most downwards until two loads lost nothing."""

    kind: Literal["frame_loss"] = "frame_loss"
    trial_seconds: float


class BackToBack(Answer):
    """RFC 2544, 26.4, with RFC 9004: the longest burst at the line's (or the tester's) most that lost nothing."""

    kind: Literal["back_to_back"] = "back_to_back"
    burst_pps: float  # the rate within a burst
    bursts: tuple[int, ...]  # the longest one without loss, in frames, of each repetition
    frames: float  # their mean; deviations stand in `bursts`
    throughput_pps: float  # needed for the corrected time
    implied_buffer_s: float  # frames / burst_pps
    corrected_buffer_s: float  # without what the DUT forwarded meanwhile (RFC 9004, 6.4)
    is_at_least: bool = False  # the longest burst that was tried passed too


class Recovery(Answer):
    """RFC 2544, 26.5: from the moment the load fell from 110 % to 50 % of the throughput to the last frame lost."""

    kind: Literal["recovery"] = "recovery"
    overload_pps: float
    recovery_pps: float
    seconds: tuple[float, ...]  # of each repetition; their mean is reported
    is_at_most: bool = False  # the generator left out frames, whose time was added: a time may have been shorter


class Reset(Answer):
    """RFC 2544, 26.6: from the last frame before to the first frame after a reset."""

    kind: Literal["reset"] = "reset"
    what: Literal["process", "port"]
    offered_pps: float
    seconds: tuple[float, ...]  # of each repetition
    lost: tuple[int, ...]  # frames, of each repetition; at a known rate they tell the same time


class Forwarding(OverLoads):
    """RFC 2889, 5.1 and 5.2: forwarding rate at the intended loads, at the highest offered load, and the highest."""

    kind: Literal["forwarding"] = "forwarding"
    at_most_offered_pps: float  # forwarding rate at the maximum offered load (FRMOL)
    most_pps: float  # maximum forwarding rate (MFR)
    most_at_pps: float  # the load at which it was


class ProofPoint(Noun):
    """The tester against itself with one frame size."""

    frame: str
    ceiling_pps: float
    pacing_error: float  # relative, at half of the ceiling
    latency_min_ns: float  # at 10 % of the ceiling: its floor
    latency_p50_ns: float
    jitter_mean_ns: float
    invalid: tuple[str, ...] = ()  # why it is no proof


class Proof(Noun):
    """Self-proof: what the tester can, over the same kind of port as the measurements that follow."""

    kind: Literal["proof"] = "proof"
    at: str
    campaign: str
    wire: str  # 'memif', 'veth', 'ports of the file'
    points: tuple[ProofPoint, ...]
    noise: tuple[str, ...] = ()  # why the machine was noisy: on a quiet one its ceilings may be higher
    facts: dict[str, object]


class IdleMode(Noun):
    """What workers with one `idle` cost and lose. Tuples have a value of each round, or of each step."""

    idle: Literal["poll", "sleep"]
    woken_by: str = ""  # what ends the sleep of dl3d's worker: 'frames' or 'time'
    dl3d_shares: tuple[float, ...]  # of a core, that the thread of dl3d's worker took without traffic
    asleep_shares: tuple[float, ...]  # of the same time, that the worker slept as dl3d counts it
    dl3gen_shares: tuple[float, ...]  # of a core, that the thread of dl3gen's worker took between runs
    p50_ns: tuple[float, ...]  # latency at a low rate
    p99_9_ns: tuple[float, ...]
    invalid_latencies: int  # of these trials, how many stayed INVALID; their times are left out
    pps: tuple[float, ...]  # throughput without loss; of the rounds whose search had an answer
    is_at_least: bool  # dl3gen was the limit of a search
    steps_sent: tuple[int, ...]  # frames, of the valid steps
    steps_lost: tuple[int, ...]
    invalid_steps: int


class Idle(Noun):
    """dl3d that polls and dl3d that sleeps while no frame comes, in turns on the same cores."""

    kind: Literal["idle"] = "idle"
    at: str
    campaign: str
    frame: str
    seconds: float  # of a look at workers without traffic, and of a latency trial
    latency_pps: float
    step_pps: float  # a share of the lower of both throughputs; 0: no steps were made, for one of them is not known
    step_seconds: float
    quiet_seconds: float  # without a frame before each step
    modes: tuple[IdleMode, ...]
    noise: tuple[str, ...] = ()
    facts: dict[str, object]


class Versus(Answer):
    """Two devices under test, measured in turn (ABAB); the ratio is that of the medians."""

    kind: Literal["versus"] = "versus"
    peer: str
    test: str  # 'throughput', ...
    ours_pps: tuple[float, ...]
    peer_pps: tuple[float, ...]
    ratio: float
    interval: tuple[float, float]  # of the ratio, with 95 % confidence
