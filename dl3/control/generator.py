"""What dl3gen answers to each method; fields that are not named here are kept as they came."""

from dl3.control.replies import Reply


class GeneratorPort(Reply):
    """One port of dl3gen. Counters are of the newest run."""

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
    neighbours: int = 0  # ARP and ND, where the port has addresses
    answered: int = 0  # of them, by dl3gen
    late_polls: int  # pauses longer than the ring holds at the run's rate, after which it was full
    longest_gap_us: float
    rx_missed: int  # what the device says it dropped because nobody polled


class GeneratorPorts(Reply):
    """Method 'ports'."""

    ports: tuple[GeneratorPort, ...]


class StreamTexts(Reply):
    """Method 'streams': the streams of the generator's file, as 'send' takes them."""

    streams: tuple[dict[str, object], ...]


class Started(Reply):
    """Method 'send': the number of the run and what the streams were understood to be."""

    run: int
    streams: tuple[dict[str, object], ...]


class Latency(Reply):
    """Nanoseconds; n is 0 (and all else 0) when nothing was received."""

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
    histogram: tuple[tuple[float, float, int], ...] = ()  # low and high edge, count; buckets that have some


class Jitter(Reply):
    """Difference between the delays of frames that came one after the other (RFC 4689), in nanoseconds."""

    n: int
    mean: float
    max: float


class StreamResult(Reply):
    """One stream of a run. lost = sent - received; corrupted frames are not received, refused ones are sent."""

    name: str
    id: int
    from_port: str
    to_port: str
    flows: int
    asked_pps: float  # 0: as fast as can be
    offered_pps: float  # those before the last burst, from when the first was due to when the last was sent
    sent: int  # of a stream that another program sends (from_port is empty): as its numbers tell
    sent_bytes: int  # with FCS
    unstamped: int = 0  # frames of a capture that carry no number; not in sent
    refused: int  # of sent: the peer's ring was full, place 'dut rx ring full'
    late: int  # due, never built: the generator was late
    busy: int = 0  # of late: the port took no more
    received: int
    received_bytes: int
    lost: int
    lost_by_gaps: int  # counted from sequence numbers alone; equals lost once nothing is under way
    duplicated: int
    reordered: int
    reordered_per: str  # 'flow' or 'stream'
    corrupted: int
    too_old: int
    last_lost: int | None = None  # sequence number of the last frame that was lost
    longest_silence_us: float = 0.0  # between two frames received one after the other
    longest_outage_us: float = 0.0  # between two frames received, of which others in between were lost
    longest_lag_us: float  # that a frame was handed over after it was due
    latency: Latency  # from the time a frame was due
    latency_from_sending: Latency
    jitter: Jitter


class GeneratorWorker(Reply):
    """One core of dl3gen."""

    worker: int
    core: int
    longest_gap_us: float  # between two looks at the clock, one at each burst, in the newest run
    rounds: int


class RunTimeline(Reply):
    """Method 'results' with timeline: true. Frames of all streams by the time at which each was due."""

    start_ns: int  # CLOCK_MONOTONIC
    bucket_ns: int
    sent: tuple[int, ...]  # refused ones too
    received: tuple[int, ...]


class WorkerPause(Reply):
    """A pause, as src/stats/pauses.h has it, of at least the time that 'gaps' was asked for."""

    worker: int
    core: int
    at_ns: int  # CLOCK_MONOTONIC, of its end
    us: float


class Pauses(Reply):
    """Method 'gaps' of both programs: the newest ones, oldest first."""

    gaps: tuple[WorkerPause, ...]
    forgotten: int  # older ones, of which only the number is known
    now_ns: int = 0  # CLOCK_MONOTONIC, of the answer


class Results(Reply):
    """Method 'results'."""

    run: int  # 0: none yet
    state: str  # 'idle', 'sending' or 'done'
    seconds: float  # from the first frame's time on, until now or the end of sending
    tsc_hz: int
    # The largest between two workers that share a stream, measured before and after the run; 0 where one worker does both,
    # a second (1e9) where the workers did not get round to measuring it.
    tsc_offset_ns: float
    streams: tuple[StreamResult, ...]
    ports: tuple[GeneratorPort, ...]
    workers: tuple[GeneratorWorker, ...]
    timeline: RunTimeline | None = None  # where it was asked for
