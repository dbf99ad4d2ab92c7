"""Self-test: the limits of the tester over a kind of port, before anything else is measured with it.

The device is replaced by a loop: testpmd in io mode forwards each frame unchanged, the minimum that can be placed
between two ports. (Both ends of one memif in a single dl3gen would need no loop, but DPDK's driver occasionally crashes
in that configuration.) dl3gen itself runs as in the measurements that follow: same cores, same kind of ports, same
streams.

The test shows that dl3gen sends, receives and accounts for every frame up to its ceiling, how accurate its rate is at
half the ceiling, and the floor of its latency measurement. It does not show more: if the loop loses frames before
dl3gen falls behind, the real ceiling is higher; the latency floor includes the loop's own polling, so dl3gen's own is
lower; and because one clock writes and reads the stamps, an error of that clock is not detected.
"""

from collections.abc import Sequence
from dataclasses import replace

from dl3.bench.site import Run
from dl3.host.noise import reasons
from dl3.model.campaign import DutSpec, Setup
from dl3.model.fault import Fault
from dl3.model.results import Proof, ProofPoint
from dl3.model.trial import Trial
from dl3.record.journal import now
from dl3.search.throughput import Bounds, Rung, SearchResult, SearchSettings, Undecided, find_throughput
from dl3.trial.order import Order

LOOP = "loop"
LOOPED_WIRES = ("memif", "veth")
LOWEST_SHARE = 1e-3  # of full speed: lower limit of the search
TERMS = SearchSettings(resolution=0.02, retries=3)  # sufficient for a ceiling; a self-test has to be short
PACING_SHARE = 0.5  # of the ceiling
FLOOR_SHARE = 0.1
TRIES = 4  # of INVALID trials


def loop_of(setup: Setup, wire: str) -> Setup:
    """The same testbed with a loop in place of the device; Fault if the wire does not support a loop."""
    if wire not in LOOPED_WIRES:
        raise Fault(
            f"there is no loop for the wire '{wire}': join two ports of dl3gen with a cable, then 'dl3 bench proof'"
        )
    loop = DutSpec(name=LOOP, kind="testpmd", options={"mode": "io", "wire": wire})
    cores = setup.dut_cores[:1]
    return setup.model_copy(update={"dut": loop, "cores": 1, "dut_cores": cores, "routes": "one", "channels": 0})


def prove(run: Run, frames: Sequence[str], wire: str) -> Proof:
    """Measure the tester with each frame size, on a run whose device is a loop; returns the recorded result."""
    run, points, before = replace(run, job=""), list[ProofPoint](), run.look()
    for i, frame in enumerate(frames):
        run.listener.on_left(frame, (len(frames) - i) * likely_s(run))
        points.append(point_of(run, frame))
    proof = Proof(
        at=now(),
        campaign=run.site.campaign,
        wire=wire,
        points=tuple(points),
        noise=reasons(before, run.look()),
        facts=dict(run.site.facts),
    )
    run.keep(proof)
    return proof


def likely_s(run: Run) -> float:
    """Estimated time per frame size: full speed, the search below it, two trials."""
    return 6 * run.trial_s


def point_of(run: Run, frame: str) -> ProofPoint:
    """The tester with one frame size; zeros and a reason if it has no ceiling."""
    try:
        found = ceiling(run, frame)
    except Undecided as fault:
        return point_without(frame, str(fault))
    if not found.pps:
        return point_without(frame, "no result: the loop lost frames at any rate, or the generator fell behind")
    half, tenth = (valid_trial(run, frame, found.pps * share) for share in (PACING_SHARE, FLOOR_SHARE))
    return ProofPoint(
        frame=frame,
        ceiling_pps=found.pps,
        pacing_error=half.pacing_error,
        latency_min_ns=tenth.latency.min,
        latency_p50_ns=tenth.latency.p50,
        jitter_mean_ns=tenth.jitter_mean,
        invalid=(*limits_of_loop(found), *half.invalid, *tenth.invalid),
    )


def point_without(frame: str, reason: str) -> ProofPoint:
    """A point without results."""
    nothing = {"ceiling_pps": 0, "pacing_error": 0, "latency_min_ns": 0, "latency_p50_ns": 0, "jitter_mean_ns": 0}
    return ProofPoint.model_validate({"frame": frame, **nothing, "invalid": (reason,)})


def limits_of_loop(found: SearchResult[Trial]) -> tuple[str, ...]:
    """Whether the loop lost frames."""
    if found.limited_by != "dut":
        return ()
    return (f"loop: it lost frames at {found.ended_pps / 1e6:.3f} Mpps, so the generator's own ceiling is higher",)


def ceiling(run: Run, frame: str) -> SearchResult[Trial]:
    """The highest rate at which the tester loses nothing and is not behind."""
    full = proof_trial(run, frame, 0.0)
    if not full.offered_pps:
        raise Undecided(f"no result: {full.invalid[0]}")
    bounds = Bounds(full.offered_pps * LOWEST_SHARE, full.offered_pps, "generator")
    known = [] if full.invalid else [Rung(bounds.high_pps, (full,), "lost" if full.loss_ratio else "passed")]
    return find_throughput(lambda pps: proof_trial(run, frame, pps), bounds, TERMS, known=known)


def proof_trial(run: Run, frame: str, pps: float) -> Trial:
    """One trial with the loop."""
    return run.trial(Order(run.streams, frame, pps, run.seconds, "proof", warm_up_s=run.warm_up_s))


def valid_trial(run: Run, frame: str, pps: float) -> Trial:
    """A valid trial, or the last of several attempts."""
    for _ in range(TRIES):
        trial = proof_trial(run, frame, pps)
        if not trial.invalid:
            break
    return trial
