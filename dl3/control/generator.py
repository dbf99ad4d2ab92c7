"""Replies of dl3gen's methods. Fields not declared here are kept unchanged."""

from dl3.control.replies import Reply


class GeneratorPort(Reply):
    """A port of dl3gen. Counters cover the latest run."""

    name: str
    device: str
    mac: str
    link_up: bool
    line_bps: float  # layer 1; 0: unknown
    has_backpressure: bool
    mtu: int = 0  # IP bytes; 0: unknown
    rx_packets: int
    foreign: int
    stale: int
    misdirected: int
    neighbours: int = 0  # ARP and ND frames received, on ports with addresses
    answered: int = 0  # of these, the ones dl3gen answered
    late_polls: int  # polls after a pause longer than the ring lasts at the run's rate, which found the ring full
    longest_gap_us: float
    rx_missed: int | None  # drops reported by the device because it was not polled; None: it does not count them


class GeneratorPorts(Reply):
    """Method 'ports'."""

    ports: tuple[GeneratorPort, ...]


class StreamTexts(Reply):
    """Method 'streams': the streams of the generator's configuration file, in the form that 'send' takes."""

    streams: tuple[dict[str, object], ...]


class Started(Reply):
    """Method 'send': the run number and the streams as parsed."""

    run: int
    streams: tuple[dict[str, object], ...]


class Latency(Reply):
    """Latencies in nanoseconds; all fields are 0 if no frame was received."""

    n: int
    min: float
    mean: float
    max: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    p99_99: float
    p99_999: float
    histogram: tuple[tuple[float, float, int], ...] = ()  # lower and upper edge, count; non-empty buckets only


class Jitter(Reply):
    """Difference between the delays of consecutive frames (RFC 4689), in nanoseconds."""

    n: int
    mean: float
    max: float


class PortAndDscp(Reply):
    """The action of a flow."""

    port: str
    dscp: int


class WrongFrame(Reply):
    """The first frame of a stream that was not as expected."""

    sequence: int
    flow: int
    found: PortAndDscp
    encap: str  # what it was encapsulated in, or "none"
    encap_id: int  # the last label, the VNI or the key
    expected: PortAndDscp


class Expected(Reply):
    """Frames of a stream with 'expect', including duplicates: checked = as expected + the others."""

    checked: int
    alternative: int  # with the action of the other secret
    wrong_port: int
    wrong_dscp: int
    wrong_encap: int  # in another encapsulation than expected
    wrong_tuple: int  # addresses or ports other than those of the frame's flow
    first_wrong: WrongFrame | None = None

    @property
    def wrong(self) -> int:
        """Frames that were not as expected."""
        return self.wrong_port + self.wrong_dscp + self.wrong_encap + self.wrong_tuple


class StreamResult(Reply):
    """One stream of a run. lost = sent - received; corrupted frames do not count as received, refused ones count as
    sent.
    """

    name: str
    id: int
    from_port: str
    to_port: str
    flows: int
    asked_pps: float  # 0: as fast as possible
    offered_pps: float  # frames before the last burst, from the first frame's due time to when the last one was sent
    sent: int  # for a stream sent by another program (from_port is empty): according to its sequence numbers
    sent_bytes: int  # including the FCS
    unstamped: int = 0  # frames of a capture without a sequence number; not included in sent
    refused: int  # part of sent: the peer's ring was full, place 'dut rx ring full'
    late: int  # frames due but never built because the generator was late
    busy: int = 0  # part of late: the port accepted no more frames
    received: int
    received_bytes: int
    lost: int
    lost_by_gaps: int  # from sequence numbers alone; equals lost once no frame is in flight
    duplicated: int
    reordered: int
    reordered_per: str  # 'flow' or 'stream'
    corrupted: int
    too_old: int
    last_lost: int | None = None  # sequence number of the last lost frame
    longest_silence_us: float = 0.0  # longest interval between consecutive received frames
    longest_outage_us: float = 0.0  # longest interval between received frames with lost frames in between
    longest_lag_us: float  # longest time from a frame's due time to its transmission
    latency: Latency  # measured from the due time of the frame
    latency_from_sending: Latency
    jitter: Jitter
    expect: Expected | None = None  # if the stream has this key


class GeneratorWorker(Reply):
    """One worker of dl3gen."""

    worker: int
    core: int
    longest_gap_us: float  # longest time between two readings of the clock, one per burst, in the latest run
    rounds: int


class RunTimeline(Reply):
    """Method 'results' with timeline: true. Frames of all streams by due time."""

    start_ns: int  # CLOCK_MONOTONIC
    bucket_ns: int
    sent: tuple[int, ...]  # including refused frames
    received: tuple[int, ...]


class Logged(Reply):
    """Method 'arrivals': frames of a stream in the file that was written, and those that came when the log was full."""

    frames: int
    missed: int


class WorkerPause(Reply):
    """A stall as defined in src/stats/stalls.h, at least as long as requested from 'gaps'."""

    worker: int
    core: int
    at_ns: int  # CLOCK_MONOTONIC, end of the pause
    us: float


class Pauses(Reply):
    """Method 'gaps' of both programs: the latest pauses, oldest first."""

    gaps: tuple[WorkerPause, ...]
    forgotten: int  # number of older pauses that are no longer stored
    now_ns: int = 0  # CLOCK_MONOTONIC, time of the reply


class Results(Reply):
    """Method 'results'."""

    run: int  # 0: none yet
    state: str  # 'idle', 'sending' or 'done'
    seconds: float  # from the first frame's due time until now or until sending ended
    tsc_hz: int
    # Largest offset between two workers that share a stream, measured before and after the run. 0 if one worker handles
    # both sides, one second (1e9) if the workers did not complete the measurement.
    tsc_offset_ns: float
    streams: tuple[StreamResult, ...]
    ports: tuple[GeneratorPort, ...]
    workers: tuple[GeneratorWorker, ...]
    timeline: RunTimeline | None = None  # if requested
