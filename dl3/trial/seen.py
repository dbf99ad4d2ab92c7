"""Collects activity of the programs and the machine during a trial, limited to the trial's time span."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dl3.control.generator import GeneratorPort, Pauses, Results, WorkerPause
from dl3.control.replies import Port, Reply, Workers
from dl3.model.evidence import Evidence, Gap
from dl3.model.trial import Trial
from dl3.trial.order import Site
from dl3.trial.timeline import compact

MOST_GAPS = 200
STRAGGLERS_NS = 50_000_000  # after the end of sending; later events cannot have caused the loss
MOST_APART_NS = 1_000_000_000  # maximum difference of two consecutive readings of the same clock

Program = Literal["dl3d", "dl3gen"]


class Status(Reply):
    """Method 'status' of both programs; only the fields needed here."""

    pid: int


class Watch(Protocol):
    """Observes the machine while a trial runs."""

    def start(self, cores: Sequence[int], processes: Mapping[str, int]) -> None:
        """Start observing the workers' cores and the processes 'dl3d' and 'dl3gen', if they run on this machine."""

    def stop(self) -> Evidence:
        """Stop, and return the evidence collected."""


@dataclass
class Seen:
    """The evidence, available when the watch has stopped."""

    evidence: Evidence = field(default_factory=Evidence)


@contextmanager
def watching(watch: Watch | None, site: Site) -> Iterator[Seen]:
    """Observe the cores of both programs' workers inside the context; without a watch the evidence is empty."""
    seen = Seen()
    if watch:
        watch.start(cores_of(site), processes_of(site))
    try:
        yield seen
    finally:
        if watch:
            seen.evidence = watch.stop()


def cores_of(site: Site) -> tuple[int, ...]:
    """Cores of all workers on this machine."""
    cores = {worker.core for worker in site.generator.ask(Results, "results").workers}
    near = None if site.is_far else site.dut
    return tuple(sorted(cores | ({worker.core for worker in near.ask(Workers, "workers").workers} if near else set())))


def processes_of(site: Site) -> dict[str, int]:
    """Process ids of the programs on this machine."""
    found = {"dl3gen": site.generator.ask(Status, "status").pid}
    return found | ({"dl3d": site.dut.ask(Status, "status").pid} if site.dut and not site.is_far else {})


@dataclass(frozen=True)
class Span:
    """The time span of a trial in CLOCK_MONOTONIC."""

    start_ns: int
    end_ns: int

    def touches(self, pause: WorkerPause) -> bool:
        """Whether a pause overlaps the span."""
        return pause.at_ns > self.start_ns and pause.at_ns - pause.us * 1e3 < self.end_ns


def span_of(results: Results, more_ns: int = STRAGGLERS_NS) -> Span | None:
    """From the first frame's due time until no frame can be in flight any more; None if unknown."""
    if not results.timeline:
        return None
    start_ns = results.timeline.start_ns
    return Span(start_ns, start_ns + round(results.seconds * 1e9) + more_ns)


def gaps_of(program: Program, pauses: Pauses, span: Span) -> list[Gap]:
    """Pauses of a program during a trial."""
    return [
        Gap(program=program, worker=pause.worker, core=pause.core, at_ns=pause.at_ns, us=pause.us)
        for pause in pauses.gaps
        if span.touches(pause)
    ]


def holes(program: Program, pauses: Pauses, span: Span) -> list[str]:
    """Reasons why pauses of a trial may be missing."""
    oldest_ns = min((pause.at_ns for pause in pauses.gaps), default=span.start_ns)
    if pauses.forgotten and oldest_ns > span.start_ns:
        return [f"{program} stalled more often than it records: stalls before {oldest_ns} ns are missing"]
    return []


def uncounted(program: Program, ports: Sequence[GeneratorPort | Port]) -> list[str]:
    """State that some ports' devices do not count what they miss."""
    names = ", ".join(port.name for port in ports if port.rx_missed is None)
    return [f"frames missed by the devices of {program}'s ports {names}: these devices do not count them"] * bool(names)


def longest(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """The longest pauses, in time order."""
    kept = sorted(gaps, key=lambda gap: gap.us, reverse=True)[:MOST_GAPS]
    return tuple(sorted(kept, key=lambda gap: gap.at_ns))


def by_our_clock(pauses: Pauses, ahead_ns: int) -> Pauses:
    """Convert pauses from a clock that is `ahead_ns` ahead of the local clock to the local clock."""
    moved = tuple(gap.model_copy(update={"at_ns": gap.at_ns - ahead_ns}) for gap in pauses.gaps)
    return pauses.model_copy(update={"gaps": moved, "now_ns": pauses.now_ns - ahead_ns})


def with_gaps(evidence: Evidence, site: Site, span: Span) -> Evidence:
    """Add the pauses of both programs' workers to the evidence."""
    own = site.generator.ask(Pauses, "gaps")
    gaps, missing = gaps_of("dl3gen", own, span), holes("dl3gen", own, span)
    if site.dut:
        others = by_our_clock(site.dut.ask(Pauses, "gaps"), site.far_ahead_ns or 0)
        if abs(others.now_ns - own.now_ns) > MOST_APART_NS:
            missing.append(
                "dl3d runs on another machine with its own clock: its stalls cannot be matched with the loss"
            )
        else:
            theirs = [gap.model_copy(update={"is_elsewhere": site.is_far}) for gap in gaps_of("dl3d", others, span)]
            gaps, missing = gaps + theirs, missing + holes("dl3d", others, span)
    return evidence.model_copy(
        update={"gaps": longest([*evidence.gaps, *gaps]), "missing": (*evidence.missing, *missing)}
    )


def with_evidence(trial: Trial, site: Site, results: Results, seen: Evidence) -> Trial:
    """Add the timeline, the workers' pauses and the other evidence to the trial."""
    span = span_of(results)
    with_uncounted = seen.model_copy(update={"missing": (*seen.missing, *uncounted("dl3gen", results.ports))})
    return trial.model_copy(
        update={
            "timeline": compact(results.timeline) if results.timeline else None,
            "evidence": with_gaps(with_uncounted, site, span) if span else with_uncounted,
        }
    )


def with_longest_gaps(trial: Trial, site: Site, results: Results) -> Trial:
    """Add the longest pause of each dl3d worker: it would have lost frames at a higher rate."""
    span = span_of(results, 0)  # later pauses, for example due to our own requests, could not have lost any frame
    if not span or not site.dut:
        return trial
    longest_of = {
        (gap.program, gap.worker): gap for gap in sorted(with_gaps(Evidence(), site, span).gaps, key=by_length)
    }
    gaps = tuple(sorted((gap for gap in longest_of.values() if gap.program == "dl3d"), key=lambda gap: gap.at_ns))
    return trial.model_copy(update={"evidence": Evidence(gaps=gaps)})


def by_length(gap: Gap) -> float:
    """Sort key of pauses."""
    return gap.us
