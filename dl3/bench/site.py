"""What a measurement with dl3gen needs besides loads: site, ports, streams, the record, the progress listener."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dl3.bench.lacking import lacking_facts
from dl3.bench.recording import Recording
from dl3.campaign.streams import parsed_streams
from dl3.control.client import Client
from dl3.control.generator import GeneratorPorts, StreamTexts
from dl3.control.replies import Reply
from dl3.control.workers import ask_idle
from dl3.host.noise import Look
from dl3.model.fault import Fault, UsageFault
from dl3.model.noun import Noun
from dl3.model.stream import CAPTURE, MIXES, Stream, shares
from dl3.model.trial import LAYER1_BYTES, Throughput, Trial
from dl3.record.facts import collect
from dl3.record.journal import append
from dl3.search.shorter import Lengths
from dl3.trial.order import Order, Site
from dl3.trial.run import Act, Runner

FRAMES = ("64", "128", "256", "512", "1024", "1280", "1518", *MIXES)
USUAL_MTU, AROUND_BYTES = 1500, 18  # bytes of a frame outside the IP packet, including the FCS
WHOLE = (
    "reset",
    "shaping",
    "free",
)  # tests whose trials are never shortened: what happens at a certain time is their result
OVERHEAD_S = 0.4  # of a trial: start, drain, reading counters


class ProgressListener:
    """Receives the progress of a measurement. All methods do nothing here."""

    def on_left(self, frame: str, seconds: float) -> None:
        """The estimated time left, in seconds; called before each trial, never during one."""

    def on_trial(self, trial: Trial) -> None:
        """A trial has ended."""

    def on_result(self, found: "Found") -> None:
        """A search has ended with a result."""

    def on_fault(self, frame: str, fault: Fault) -> None:
        """A search has ended without a result."""

    def is_waiting(self) -> bool:
        """Whether a coarse result now is preferred to a finer one later; called between rates of a binary search."""
        return False


@dataclass(frozen=True)
class Found:
    """The result of a search, and the trial with that rate."""

    result: Throughput
    best: Trial | None


def shortened(order: Order, seconds: float) -> Order:
    """The same load for a shorter time."""
    if seconds >= order.seconds:
        return order
    return replace(order, seconds=seconds, ordered_s=order.seconds, warm_up_s=min(order.warm_up_s, seconds))


@dataclass(frozen=True)
class Run:
    """All trials of one command."""

    runner: Runner
    streams: tuple[Stream, ...]
    record: Path
    seconds: float  # of one trial
    warm_up_s: float = 0.2
    listener: ProgressListener = field(default_factory=ProgressListener)
    look: Callable[[], Look] = Look  # takes a snapshot of the machine before and after searches; default: empty
    job: str = ""  # key of a campaign's job, stored with each trial
    recording: Recording = field(default_factory=Recording)  # the recorded part of that job
    lengths: Lengths = field(default_factory=Lengths)  # whether stalls make shorter trials necessary now
    made: list[Trial] = field(default_factory=list)  # all trials so far

    @property
    def site(self) -> Site:
        """The site of the trials."""
        return self.runner.site

    @property
    def trial_s(self) -> float:
        """Total duration of one trial."""
        return self.seconds + self.trial_s_beside

    @property
    def trial_s_beside(self) -> float:
        """Duration of a trial besides its sending time."""
        return self.warm_up_s + OVERHEAD_S

    def trial(self, order: Order, act: Act | None = None) -> Trial:
        """Run and record one trial, calling `act` after a quarter of its duration. A recorded trial is replayed.

        If the generator's core is taken too often for such a trial, shorter ones replace it, unless it has a structure in
        time; the one returned stands for them.
        """
        if act or order.frames or order.surplus or order.test in WHOLE:
            return self._once(order, act)
        return self.lengths.measure(lambda seconds: self._once(shortened(order, seconds)), order.seconds, order.goals)

    def _once(self, order: Order, act: Act | None = None) -> Trial:
        """Exactly this trial."""
        trial = self.recording.take(order)
        if not trial:
            trial = self.runner.run(replace(order, job=self.job), act)
            self.keep(trial)
            self.listener.on_trial(trial)
        self.made.append(trial)
        return trial

    def keep(self, noun: Noun) -> None:
        """Append one line to the record, unless it is already there."""
        if not self.recording.has(noun):
            append(self.record, noun)


@dataclass(frozen=True)
class Lines:
    """The lines that carry the streams: their speeds (layer 1, 0: unknown) and their shares of all frames."""

    speeds_bps: tuple[float, ...]
    loads: tuple[float, ...]

    @classmethod
    def of(cls, generator: Client, streams: Sequence[Stream]) -> "Lines":
        """As reported by the generator's ports."""
        ports = {port.name: port.line_bps for port in generator.ask(GeneratorPorts, "ports").ports}
        loads: dict[str, float] = {}
        for stream, share in zip(streams, shares(streams), strict=True):
            sender = stream.sender or ""
            loads[sender] = loads.get(sender, 0.0) + share
        return cls(tuple(ports.get(name, 0.0) for name in loads), tuple(loads.values()))

    @property
    def total_bps(self) -> float:
        """Of all sending ports; 0 if one is unknown."""
        return sum(self.speeds_bps) if all(self.speeds_bps) else 0.0

    def most_pps(self, mean_bytes: float) -> float:
        """Frames per second over all streams at which the first line is saturated; 0 if unknown."""
        bits = (mean_bytes + LAYER1_BYTES) * 8
        return min((s / bits / load for s, load in zip(self.speeds_bps, self.loads, strict=True) if s), default=0.0)


def streams_of(generator: Client, given: Sequence[Stream] | None) -> tuple[Stream, ...]:
    """The given streams, or those of the generator's configuration; all of them must be sent by dl3gen."""
    if given is None:
        texts = generator.ask(StreamTexts, "streams").streams
        if not texts:
            raise UsageFault("dl3gen's file has no streams: add some, or give a file with --streams")
        given = parsed_streams(texts, "dl3gen's file")
    for i, stream in enumerate(given):
        if not stream.sender:
            raise UsageFault(
                f"stream {stream.name or i} is only received, so its rate cannot be set: name the port that sends it, "
                "'from: PORT'"
            )
    return tuple(given)


def frames_for(streams: Sequence[Stream], generator: Client) -> tuple[str, ...]:
    """All sizes and mixes, plus jumbo frames at the ports' MTU if it exceeds 1500.

    If the headers and the stamp do not fit into the smallest size, that is replaced by the size they need. Captures
    have their own sizes.
    """
    if all(stream.is_replay for stream in streams):
        return (CAPTURE,)
    frames, smallest = (*FRAMES, *jumbo_for(streams, generator)), max(stream.smallest_bytes() for stream in streams)
    if smallest <= int(frames[0]):
        return frames
    return (str(smallest), *(frame for frame in frames if frame.isdigit() and int(frame) > smallest))


def jumbo_for(streams: Sequence[Stream], generator: Client) -> tuple[str, ...]:
    """The longest frame supported by all ports of the streams, if longer than all standard sizes."""
    used = {name for stream in streams for name in (stream.sender, stream.to)}
    mtus = [port.mtu for port in generator.ask(GeneratorPorts, "ports").ports if port.name in used]
    most = min(mtus, default=0)
    return (str(most + AROUND_BYTES),) if most > USUAL_MTU else ()


def facts_of(generator: Client, dut: Client | None, build: Path) -> dict[str, object]:
    """Facts of the machine, with what it lacks, and those reported by both programs."""
    facts: dict[str, object] = collect(build).model_dump() | lacking_facts()
    reported = [("generator", generator), *([("forwarder", dut)] if dut else [])]
    wanted = ("version", "dpdk", "workers", "memory")
    for name, client in reported:
        status = client.ask(Reply, "status").model_dump()
        idle = ask_idle(client) if client is dut else {}
        facts[name] = {key: value for key, value in status.items() if key in wanted} | idle
    return facts
