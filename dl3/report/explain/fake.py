"""A synthetic trial: 10 Mpps for a second through one worker of dl3d on core 3, with rings of 2,048 frames."""

from collections.abc import Sequence
from typing import Any

from dl3.model.evidence import Event, Evidence, Gap, Loss, Timeline, Work
from dl3.model.trial import Account, Spread, Trial

START_NS = 5_000_000_000_000
BUCKET_NS = 1_000_000
PPS = 10_000_000
STEPS = {"rx": 30.0, "parse": 20.0, "lookup": 62.0, "rewrite": 28.0, "send": 40.0}
SWITCHES = {"switches core 3": 4.0, "switches core 0": 4.0}


def gap(at_ms: float, us: float, program: str = "dl3d", core: int = 3) -> Gap:
    """A stall that begins this many milliseconds after the start."""
    at_ns = START_NS + round(at_ms * 1e6 + us * 1e3)
    return Gap.model_validate({"program": program, "worker": 0, "core": core, "at_ns": at_ns, "us": us})


def event(at_ms: float, us: float, who: str = "kworker/3:1", core: int = 3, what: str = "switch") -> Event:
    """An event that begins this many milliseconds after the start."""
    at_ns = START_NS + round(at_ms * 1e6 + us * 1e3)
    return Event.model_validate({"what": what, "at_ns": at_ns, "us": us, "core": core, "who": who})


def loss(at_ms: int, frames: int, ms: int = 1) -> Loss:
    """Lost frames in the buckets from there on."""
    return Loss(at_ns=START_NS + (at_ms + ms) * BUCKET_NS, us=ms * 1e3, frames=frames)


def work(cycles: float = 180.0, empty: float = 0.4, packets: int = PPS, worker: int = 0) -> Work:
    """A worker at 2.6 GHz."""
    costs = {step: cost * cycles / 180 for step, cost in STEPS.items()}
    counts = {"packets": packets, "bursts": packets // 20, "loops": 1_000_000, "empty_loops": round(empty * 1e6)}
    more = {"tsc_hz": 2.6e9, "cycles_per_packet": costs, "queues": {f"in{worker}/0": packets}}
    return Work.model_validate({"worker": worker, "core": 3 + worker, **counts, **more})


def line(losses: Sequence[Loss], pps: int = PPS, ms: int = 1000) -> Timeline:
    """One bucket per millisecond."""
    lost = [0] * ms
    for one in losses:
        n = round(one.us / 1e3)
        first = (one.at_ns - START_NS) // BUCKET_NS - n
        for i in range(first, first + n):
            lost[i] += one.frames // n
    sent = (pps // 1000,) * ms
    left = tuple(each - gone for each, gone in zip(sent, lost, strict=True))
    return Timeline(start_ns=START_NS, bucket_ns=BUCKET_NS, sent=sent, received=left, losses=tuple(losses))


def trial(places: dict[str, int], losses: Sequence[Loss] = (), evidence: Evidence | None = None, **more: Any) -> Trial:
    """A trial with its loss by location and by time; `pps` and `ms` override the default rate and length."""
    lost, pps, ms = sum(places.values()), more.pop("pps", PPS), more.pop("ms", 1000)
    sent, seconds = pps * ms // 1000, ms / 1e3
    counts = {"sent": sent, "received": sent - lost, "lost": lost, "lost_by_place": places}
    zeros = dict.fromkeys(["duplicated", "reordered", "corrupted", "late", "sent_bytes", "received_bytes"], 0)
    account = Account.model_validate({**counts, **zeros, "reordered_per": "flow"})
    names: dict[str, Any] = {
        "at": "t",
        "campaign": "c",
        "test": "throughput",
        "dut": "dl3d",
        "frame": "64",
        "mean_bytes": 64.0,
    }
    rates = {"asked_pps": pps, "offered_pps": pps, "received_pps": (sent - lost) / seconds, "seconds": seconds}
    reported: dict[str, Any] = {
        "timeline": line(losses, pps, ms) if losses else None,
        "evidence": evidence,
        "invalid": (),
        "pacing_error": 0.0,
        "facts": {},
    }
    times = {"latency": Spread(), "latency_from_sending": Spread(), "jitter_mean": 0.0, "jitter_max": 0.0}
    return Trial.model_validate({**names, **rates, "account": account, **times, **reported, **more})


def seen(gaps: Sequence[Gap] = (), events: Sequence[Event] = (), **more: Any) -> Evidence:
    """Evidence of dl3d and of a machine that traces which thread has a core."""
    known = {"totals": SWITCHES, "work": (work(),), "ring_frames": 2048}
    return Evidence.model_validate({"gaps": tuple(gaps), "events": tuple(events), **known, **more})
