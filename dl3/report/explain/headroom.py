"""Without loss: which limit comes next, and at which rate. Pure."""

from collections.abc import Iterator

from dl3.model.evidence import Gap
from dl3.model.trial import Trial
from dl3.report.explain.finding import Finding, Value
from dl3.report.explain.load import load_of, strains


def worker_limit(trial: Trial) -> tuple[float, Finding] | None:
    """The rate at which the busiest worker is fully loaded, all streams together."""
    for strain in strains(trial.evidence, trial)[:1]:
        if not strain.fill:
            return None
        limit_pps = trial.offered_pps / strain.fill
        values: dict[str, Value] = {
            "worker": strain.work.worker,
            "core": strain.work.core,
            "cycles": strain.cycles,
            "steps": strain.steps,
            "step": strain.costliest,
            "ghz": strain.work.tsc_hz / 1e9,
            "mpps": trial.offered_pps / 1e6,
            "limit": limit_pps / 1e6,
            "fill": strain.fill,
            "burst": strain.burst,
        }
        return limit_pps, Finding("headroom", "headroom.worker", values)
    return None


def stall_limit(trial: Trial) -> tuple[float, Finding] | None:
    """The rate from which a stall like the longest one overflows a ring, all streams together."""
    gaps: list[Gap] = [gap for gap in trial.evidence.gaps if gap.program == "dl3d" and gap.us] if trial.evidence else []
    if not gaps:
        return None
    longest = max(gaps, key=lambda gap: gap.us)
    load = load_of(trial, longest.worker)
    if not load.ring_frames or not load.busiest_pps:
        return None
    limit_pps = trial.offered_pps * load.holds_us / longest.us
    values: dict[str, Value] = {
        "worker": longest.worker,
        "core": longest.core,
        "us": longest.us,
        "ring": load.ring_frames,
        "limit": limit_pps / 1e6,
        "mpps": trial.offered_pps / 1e6,
    }
    return limit_pps, Finding("headroom", "headroom.stall", values)


def headroom_findings(trial: Trial) -> Iterator[Finding]:
    """The nearest limit first."""
    found = [limit for limit in (worker_limit(trial), stall_limit(trial)) if limit]
    values: dict[str, Value] = {"mpps": trial.offered_pps / 1e6, "sent": trial.account.sent}
    if not found:
        yield Finding("headroom", "headroom.unknown", values)
        return
    yield Finding("headroom", "headroom.none_lost", values)
    ordered = sorted(found, key=lambda limit: limit[0])
    least_pps, first = ordered[0]
    advice = "worker_next" if first.key == "headroom.worker" else "stall_next"
    yield Finding(first.topic, first.key, {**first.values, "least": least_pps / 1e6}, 0, advice)
    yield from (limit[1] for limit in ordered[1:])
