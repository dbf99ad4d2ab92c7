"""Self-proof: what the tester can by itself over a kind of port, before anything else is measured with it.

In place of the device stands a loop: testpmd in mode io hands each frame on as it came, the least that can stand
between two ports. (Both ends of one memif in one dl3gen would need no loop, but DPDK's driver crashes that way now and
then.) dl3gen itself runs as in the measurements that follow: same cores, same kind of ports, same streams.

This proves that dl3gen sends, receives, and accounts for each frame up to its ceiling, how exact its rate is at half
of it, and below which time its latencies say nothing. It does not prove more: where the loop loses frames before
dl3gen falls behind, the ceiling is higher than said; the floor of latency contains the loop's own polling, so dl3gen's
own is lower; and as one clock stamps and reads the stamps, an error of that clock is not seen.
"""

from collections.abc import Sequence
from dataclasses import replace

from dl3.bench.site import Course
from dl3.host.noise import reasons
from dl3.model.answers import Proof, ProofPoint
from dl3.model.campaign import DutSpec, Setup
from dl3.model.fault import Fault
from dl3.model.trial import Trial
from dl3.record.journal import now
from dl3.search.throughput import Answer, Bounds, Rung, Terms, Undecided, find_throughput
from dl3.trial.order import Order

LOOP = "loop"
LOOPED_WIRES = ("memif", "veth")
LOWEST_SHARE = 1e-3  # of full speed: no ceiling is searched below
TERMS = Terms(resolution=0.02, retries=3)  # a ceiling wants no more; a proof is to be short
PACING_SHARE = 0.5  # of the ceiling
FLOOR_SHARE = 0.1
TRIES = 4  # of trials that are INVALID


def loop_of(setup: Setup, wire: str) -> Setup:
    """The same bed with a loop in place of the device; Fault where no loop can stand on such a wire."""
    if wire not in LOOPED_WIRES:
        raise Fault(
            f"there is no loop for the wire '{wire}': join two ports of dl3gen with a cable, then 'dl3 bench proof'"
        )
    loop = DutSpec(name=LOOP, kind="testpmd", options={"mode": "io", "wire": wire})
    cores = setup.dut_cores[:1]
    return setup.model_copy(update={"dut": loop, "cores": 1, "dut_cores": cores, "routes": "one", "channels": 0})


def prove(course: Course, frames: Sequence[str], wire: str) -> Proof:
    """Measure the tester with each frame size, on a course whose device is a loop; the proof is in the record then."""
    course, points, before = replace(course, job=""), list[ProofPoint](), course.look()
    for i, frame in enumerate(frames):
        course.audience.heard_left(frame, (len(frames) - i) * likely_s(course))
        points.append(point_of(course, frame))
    proof = Proof(
        at=now(),
        campaign=course.site.campaign,
        wire=wire,
        points=tuple(points),
        noise=reasons(before, course.look()),
        facts=dict(course.site.facts),
    )
    course.keep(proof)
    return proof


def likely_s(course: Course) -> float:
    """About how long it takes for one frame size: full speed, the search below it, two trials."""
    return 6 * course.trial_s


def point_of(course: Course, frame: str) -> ProofPoint:
    """The tester with one frame size; zeros and a reason where it has no ceiling."""
    try:
        found = ceiling(course, frame)
    except Undecided as fault:
        return point_without(frame, str(fault))
    if not found.pps:
        return point_without(frame, "no answer: the loop lost frames at any rate, or the generator fell behind")
    half, tenth = (valid_trial(course, frame, found.pps * share) for share in (PACING_SHARE, FLOOR_SHARE))
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
    """Nothing is proved."""
    nothing = {"ceiling_pps": 0, "pacing_error": 0, "latency_min_ns": 0, "latency_p50_ns": 0, "jitter_mean_ns": 0}
    return ProofPoint.model_validate({"frame": frame, **nothing, "invalid": (reason,)})


def limits_of_loop(found: Answer[Trial]) -> tuple[str, ...]:
    """Whether it was the loop that lost frames."""
    if found.limited_by != "dut":
        return ()
    return (f"loop: it lost frames at {found.ended_pps / 1e6:.3f} Mpps, so the generator's own ceiling is higher",)


def ceiling(course: Course, frame: str) -> Answer[Trial]:
    """The highest rate at which the tester loses nothing and is not behind."""
    full = proof_trial(course, frame, 0.0)
    if not full.offered_pps:
        raise Undecided(f"no answer: {full.invalid[0]}")
    bounds = Bounds(full.offered_pps * LOWEST_SHARE, full.offered_pps, "generator")
    known = [] if full.invalid else [Rung(bounds.high_pps, (full,), "lost" if full.loss_ratio else "passed")]
    return find_throughput(lambda pps: proof_trial(course, frame, pps), bounds, TERMS, known=known)


def proof_trial(course: Course, frame: str, pps: float) -> Trial:
    """One, of the loop."""
    return course.run(Order(course.streams, frame, pps, course.seconds, "proof", warm_up_s=course.warm_up_s))


def valid_trial(course: Course, frame: str, pps: float) -> Trial:
    """One that is not INVALID, or the last of some tries."""
    for _ in range(TRIES):
        trial = proof_trial(course, frame, pps)
        if not trial.invalid:
            break
    return trial
