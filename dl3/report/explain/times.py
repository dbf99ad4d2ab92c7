"""Causes by time: stalls of workers, owners of their cores, fully loaded workers. Pure."""

from collections.abc import Iterable, Iterator

from dl3.model.evidence import Evidence, Timeline
from dl3.model.trial import Trial
from dl3.report.explain.causes import Cause, Stall, causes_of, losses_of, named, stalls_beside
from dl3.report.explain.finding import Finding, Value
from dl3.report.explain.load import Strain, load_of, strains
from dl3.report.explain.places import waited_for, waiting

MOST_CAUSES = 5
STEADY = 0.9  # share of the time
SMALL = 0.01  # of all loss: not worth a sentence


def at_s(trial: Trial, at_ns: float) -> float:
    """Seconds since the first frame was due."""
    return (at_ns - trial.timeline.start_ns) / 1e9 if trial.timeline else 0.0


def cause_values(trial: Trial, cause: Cause) -> dict[str, Value]:
    """The figures of a cause."""
    worst, load = cause.worst, load_of(trial, cause.worker)
    gap = worst.gap
    head: dict[str, Value] = {"program": cause.program, "worker": cause.worker, "core": cause.core}
    return head | {
        "n": len(cause.stalls),
        "frames": cause.frames,
        "us": gap.us,
        "at_s": at_s(trial, gap.at_ns - gap.us * 1e3),
        "what": cause.owner[0] if cause.owner else "",
        "who": cause.owner[1] if cause.owner else "",
        "others": worst.n_others,
        "taken_us": worst.owners_us,
        "ring": load.ring_frames,
        "holds_us": load.holds_us,
        "mpps": load.busiest_pps / 1e6,
        "expected": sum(load.lost_in(stall.gap.us) for stall in cause.stalls),
        "steal_ms": steal_ms(trial, cause),
    }


def steal_ms(trial: Trial, cause: Cause) -> float:
    """The time that the hypervisor took from a core over the whole trial."""
    found = trial.evidence.total("steal ms", cause.core, cause.is_elsewhere) if trial.evidence else None
    return found or 0.0


def sees_all(trial: Trial, cause: Cause) -> bool:
    """Whether every switch to another thread is known, and not only the longest ones."""
    evidence, here = trial.evidence or Evidence(), (cause.core, cause.is_elsewhere)
    known = sum(1 for one in evidence.events if one.what == "switch" and (one.core, one.is_elsewhere) == here)
    found = evidence.total("switches", *here)
    return found is not None and found <= known


def owner_key(trial: Trial, cause: Cause) -> str:
    """The key of the sentence that names the owner of the core."""
    if cause.owner:
        return "interrupted" if cause.owner[0] == "interrupt" else "taken"
    if not sees_all(trial, cause):
        return "stalled"
    return "stolen" if steal_ms(trial, cause) > 0 else "own"


def cause_finding(trial: Trial, cause: Cause) -> Finding:
    """One sentence for a cause: the owner of the core, the capacity of the ring, the frames lost."""
    values, key = cause_values(trial, cause), owner_key(trial, cause)
    knows_ring = cause.program == "dl3d" and values["ring"] and values["holds_us"]
    who = "device" if cause.program == "dl3d" else "generator"
    advice = {"taken": f"isolate.{who}", "interrupted": f"interrupts.{who}", "stolen": "hypervisor"}.get(key, "")
    return Finding("time", f"{key}.ring" if knows_ring else f"{key}.{who}", values, cause.frames, advice)


def starved(trial: Trial) -> Iterator[Finding]:
    """For a trial in which the generator fell behind: its longest stall, and who had its core."""
    evidence = trial.evidence
    gaps = [gap for gap in evidence.gaps if gap.program == "dl3gen"] if evidence else []
    if not evidence or not gaps or not trial.is_behind:
        return
    causes = causes_of(named(Stall(gap), evidence.events) for gap in gaps)
    longest = max(causes, key=lambda cause: sum(stall.gap.us for stall in cause.stalls))
    found = cause_finding(trial, longest)
    yield Finding(found.topic, f"{found.key}.behind", found.values, 0, found.advice)


def full_finding(strain: Strain) -> Finding:
    """The capacity and the offered load of a worker that was fully loaded."""
    values: dict[str, Value] = {
        "worker": strain.work.worker,
        "core": strain.work.core,
        "cycles": strain.cycles,
        "steps": strain.steps,
        "ghz": strain.work.tsc_hz / 1e9,
        "most": strain.most_pps / 1e6,
        "mpps": strain.offered_pps / 1e6,
        "busy": min(1.0, strain.busy),
    }
    return Finding("worker", "full", values, 0, "full")


def share_of_time(line: Timeline | None) -> float:
    """Share of the sending buckets that lost frames."""
    if not line:
        return 0.0
    pairs = [(sent, received) for sent, received in zip(line.sent, line.received, strict=False) if sent]
    return sum(1 for sent, received in pairs if sent > received) / len(pairs) if pairs else 0.0


def overrun(trial: Trial, frames: int, full: Iterable[Strain]) -> int:
    """How many frames outside of stalls were lost because workers of the device were fully loaded."""
    return min(frames, waited_for(trial, "dl3d"), sum(strain.excess for strain in full))


def unexplained(trial: Trial, frames: int, is_full: bool) -> Iterator[Finding]:
    """The loss that is explained neither by stalls nor by a fully loaded worker."""
    share = share_of_time(trial.timeline)
    values: dict[str, Value] = {"frames": frames, "share": share}
    if is_full:
        yield Finding("unexplained", "unexplained.full", values, frames)
    elif not losses_of(trial.timeline):
        yield Finding("unexplained", "no_timeline", values, frames)
    elif not trial.evidence or not trial.evidence.work:
        yield Finding("unexplained", "silent.steady" if share >= STEADY else "silent", values, frames, "silent")
    else:
        yield Finding("unexplained", "unexplained.steady" if share >= STEADY else "unexplained", values, frames)


def time_findings(trial: Trial) -> Iterator[Finding]:
    """All causes supported by the evidence, and the unexplained loss."""
    waited, program = waiting(trial)
    if not waited:
        return
    stalls, n_left = stalls_beside(trial, program)
    causes = causes_of(stalls)
    yield from (cause_finding(trial, cause) for cause in causes[:MOST_CAUSES])
    if rest := causes[MOST_CAUSES:]:
        frames = sum(cause.frames for cause in rest)
        yield Finding("time", "more", {"n": sum(len(cause.stalls) for cause in rest), "frames": frames}, frames)
    known = sum(cause.frames for cause in causes)
    yield from left_findings(trial, waited, min(waited, max(n_left, waited - known)))


def left_findings(trial: Trial, waited: int, left: int) -> Iterator[Finding]:
    """Fully loaded workers, and their part of the loss outside of stalls."""
    full = [strain for strain in strains(trial.evidence, trial) if strain.is_full]
    yield from (full_finding(strain) for strain in full)
    if left <= SMALL * waited:
        return
    lost = overrun(trial, left, full)
    if lost:
        yield Finding("worker", "overrun", {"frames": lost}, lost)
    if left - lost > SMALL * waited:
        yield from unexplained(trial, left - lost, bool(full))
