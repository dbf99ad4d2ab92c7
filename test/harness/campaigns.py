"""Synthetic records of whole campaigns: planned like real ones, with results of a simulated device."""

import random
from collections.abc import Iterable
from dataclasses import replace

from dl3.campaign.machine import Machine
from dl3.campaign.plan import jobs_of, planned
from dl3.cli.campaign_file import read_campaign
from dl3.model.campaign import Job, Skipped
from dl3.model.evidence import Event, Evidence, Gap, Timeline, Work
from dl3.model.results import (
    BackToBack,
    Forwarding,
    FrameLoss,
    LossPoint,
    Proof,
    ProofPoint,
    Recovery,
    Reset,
    Versus,
)
from dl3.model.trial import Throughput, Trial
from dl3.report.results import Record
from harness.records import FRAMES, MEANS, Maker, spread

HERE = Machine(
    n_cores=2,
    available_mib=20_000,
    cpu_model="AMD EPYC 9555 64-Core Processor",
    server="a virtual machine",
    host_os="Debian GNU/Linux 12",
)
AT = "2026-11-21T23:10:00+00:00"
PLACES = {"rx ring full": 0.9, "no_mbuf": 0.1}
REASON = "late: the generator skipped 65,012 frames (0.40%) that were due"
LAB = {"lab": {"wire": "memif", "dut": "dl3d", "cores": {"dl3d": 1, "dl3gen": 0}, "ring_frames": 16384}}


def rate_of(job: Job, frame: str) -> float:
    """The capacity of the simulated device: lower with larger frames, many flows and few huge pages."""
    size = MEANS[frame]
    base = 9.6e6 * float((64 / size) ** 0.35) * (0.45 if job.setup.dut.kind == "ovs" else 1.0)
    many = 1 - 0.06 * max(job.traffic.flows.bit_length() - 14, 0)
    return base * many * (1 + 0.004 * (job.setup.memory_mib // 1024))


def found_flows(job: Job, pps: float, missed: int = 0) -> dict[str, Evidence]:
    """What dl3d counts in a trial of 5 s if it has a flow table."""
    if not job.setup.dut.has_flow_table:
        return {}
    packets = int(pps * 5)
    of = {"worker": 0, "core": 1, "tsc_hz": 2e9, "bursts": 1, "loops": 1, "empty_loops": 0}
    return {
        "evidence": Evidence(work=(Work.model_validate({**of, "packets": packets, "flow_packets": packets - missed}),))
    }


def searching(maker: Maker, job: Job, pps: float, dice: random.Random) -> list[Trial | Throughput]:
    """The trials of one search and its results for two goals."""
    own = replace(maker, dut=job.setup.dut.name, ceiling_pps=pps)
    shares = (1.9, 1.4, 1.2, 1.1, 1.05, 1.02, 1.01, 1.005, 0.995, 0.99, 0.98, 1.0)
    found: list[Trial | Throughput] = [
        own.trial(job.frame, pps * share, job=job.key, **found_flows(job, min(pps, pps * share))) for share in shares
    ]
    for goal in (0.0, 0.005):
        middle = pps * (1 + goal) * dice.uniform(0.99, 1.01)
        is_noisy = dice.random() < 0.05
        result = own.result(
            job.frame,
            middle,
            job=job.key,
            goal_loss_ratio=goal,
            method="mlrsearch",
            exceed_ratio=0.5 if goal else 0.0,
            conditional_pps=middle * (1 - goal),
            interval_pps=(middle * 0.985, middle * 1.02),
            noise=("8.4 % of the time was stolen by the hypervisor",) if is_noisy else (),
            line_bps=0,
            n_trials=len(shares),
        )
        found.append(result)
    return found


def proof(maker: Maker, frames: Iterable[str]) -> Proof:
    """The generator's self-test."""
    points = [
        ProofPoint(
            frame=frame,
            ceiling_pps=24e6 * (64 / MEANS[frame]) ** 0.15,
            pacing_error=0.00002,
            latency_min_ns=1450,
            latency_p50_ns=2100,
            jitter_mean_ns=180,
        )
        for frame in frames
    ]
    return Proof(at=AT, campaign=maker.campaign, wire="memif", points=tuple(points), facts=dict(maker.facts))


def white_paper(seed: int = 1, campaign: str = AT) -> list[Record]:
    """The 19 cases: some measured, some not applicable here, one job without a result."""
    dice = random.Random(seed)
    maker = Maker(campaign=campaign, facts=(*Maker().facts, *LAB.items()), line_bps=0)
    plan = planned(read_campaign("white-paper"), HERE, campaign)
    jobs = jobs_of(plan)
    records: list[Record] = [plan, proof(maker, dict.fromkeys(job.frame for job in jobs))]
    for job in jobs[:-1]:
        records += searching(maker, job, rate_of(job, job.frame) * dice.uniform(0.99, 1.01), dice)
    reason = "Open vSwitch did not forward a single frame within 10 s: look at its log"
    records.append(Skipped(at=AT, campaign=campaign, job=jobs[-1].key, reason=reason))
    return records


def contrail(losing_pps: float, campaign: str = AT) -> list[Record]:
    """The loss of a device that loses above a rate, at the rates of the OpenContrail report and at others."""
    maker = Maker(campaign=campaign, facts=(*Maker().facts, *LAB.items()), line_bps=0)
    plan = planned(read_campaign("contrail"), HERE, campaign)
    records: list[Record] = [plan]
    for job in jobs_of(plan):
        rates = sorted({*job.effort.rates, *(8e6 * n / 10 for n in range(1, 11))}, reverse=True)
        found = [LossPoint(share=pps / 8e6, pps=pps, loss_ratio=max(0.0, 1 - losing_pps / pps)) for pps in rates]
        own = replace(maker, dut=job.setup.dut.name)
        if job.test == "frame loss":
            of = {**common(own, "64"), "frame": job.frame, "mean_bytes": float(job.frame), "job": job.key}
            records.append(FrameLoss.model_validate({**of, "points": found, "trial_seconds": 2.0}))
    return records


def timeline(lost_at: dict[int, int]) -> Timeline:
    """2 s in buckets of 5 ms, with the frames lost in each bucket."""
    sent = (50_000,) * 400
    return Timeline(
        start_ns=10**12,
        bucket_ns=5_000_000,
        sent=sent,
        received=tuple(each - lost_at.get(n, 0) for n, each in enumerate(sent)),
    )


def evidence() -> Evidence:
    """A core that was taken away twice."""
    return Evidence(
        gaps=(
            Gap(program="dl3d", worker=0, core=1, at_ns=10**12 + 612_000_000, us=4312),
            Gap(program="dl3gen", worker=0, core=0, at_ns=10**12 + 1_400_000_000, us=210),
        ),
        events=(
            Event(what="switch", at_ns=10**12 + 611_900_000, us=4301, core=1, who="kworker/1:3"),
            Event(what="steal", at_ns=10**12 + 1_390_000_000, us=8000, core=0, who="hypervisor"),
            Event(what="netlink", at_ns=10**12 + 900_000_000, us=0, core=-1, who="1,200"),
        ),
        totals={"switches core 1": 14, "steal ms core 0": 8},
        missing=("no sched events: tracefs is not mounted",),
    )


def lossy(maker: Maker) -> Trial:
    """A trial with loss, with complete evidence."""
    made = maker.trial("64", 10e6, seconds=2.0, timeline=timeline({121: 21_000, 122: 9_000}).model_dump())
    places = {place: int(30_000 * share) for place, share in PLACES.items()}
    account = made.account.model_copy(
        update={"sent": 20_000_000, "received": 19_970_000, "lost": 30_000, "lost_by_place": places}
    )
    return made.model_copy(update={"account": account, "evidence": evidence()})


def common(maker: Maker, frame: str) -> dict[str, object]:
    """The fields common to all results."""
    head = {"at": AT, "campaign": maker.campaign, "dut": maker.dut, "frame": frame}
    return {**head, "mean_bytes": FRAMES[frame], "facts": dict(maker.facts)}


def points(ceiling_pps: float) -> tuple[LossPoint, ...]:
    """Loss at six loads around a ceiling."""
    rates = {share: ceiling_pps * 1.4 * share for share in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)}
    return tuple(
        LossPoint(share=share, pps=pps, loss_ratio=max(0.0, 1 - ceiling_pps / pps)) for share, pps in rates.items()
    )


def versus(maker: Maker, of: dict[str, object]) -> Versus:
    """Compared with a slightly slower peer."""
    ours = tuple(maker.ceiling_pps * (1 + n / 100) for n in range(5))
    peer = tuple(pps * 0.93 for pps in ours)
    more = {"ours_pps": ours, "peer_pps": peer, "ratio": 1.075, "interval": (1.01, 1.14)}
    return Versus.model_validate({**of, "peer": "l3fwd", "test": "throughput", **more})


def resets(of: dict[str, object]) -> list[Reset]:
    """Resets of the process and of the port."""
    found = []
    for what, seconds in (("process", (0.61, 0.66)), ("port", (0.012, 0.014))):
        lost = tuple(int(each * 1e6) for each in seconds)
        found.append(Reset.model_validate({**of, "what": what, "offered_pps": 1e6, "seconds": seconds, "lost": lost}))
    return found


def bursts(maker: Maker, of: dict[str, object]) -> BackToBack:
    """Bursts that fit into a ring of 16,384 frames."""
    rates = {"burst_pps": maker.ceiling_pps * 1.4, "throughput_pps": maker.ceiling_pps}
    frames = {"bursts": (16_100, 16_384, 15_900), "frames": 16_128}
    times = {"implied_buffer_s": 0.00091, "corrected_buffer_s": 0.00026}
    return BackToBack.model_validate({**of, **rates, **frames, **times})


def others(maker: Maker, frame: str) -> list[Record]:
    """One result of each of the other tests."""
    of, top = common(maker, frame), maker.ceiling_pps
    at_loads = {**of, "points": points(top)}
    highest = {"at_most_offered_pps": top * 0.98, "most_pps": top, "most_at_pps": top * 1.02}
    times = {"overload_pps": top * 1.4, "recovery_pps": top * 0.5, "seconds": (0.0021, 0.0030, 0.0024)}
    return [
        FrameLoss.model_validate({**at_loads, "trial_seconds": 2.0}),
        bursts(maker, of),
        Recovery.model_validate({**of, **times}),
        *resets(of),
        Forwarding.model_validate({**at_loads, **highest}),
        versus(maker, of),
    ]


def every_test(maker: Maker, records: Iterable[Record]) -> list[Record]:
    """A record with a result of each test, the self-test, and a trial whose loss is explained."""
    found = [proof(maker, FRAMES), *records, lossy(maker)]
    for frame in ("64", "512", "imix"):
        found += others(replace(maker, ceiling_pps=maker.ceiling_pps * (64 / FRAMES[frame]) ** 0.3), frame)
    return found


def latencies(maker: Maker, frame: str, base_ns: float) -> list[Trial]:
    """Latency trials at three loads."""
    found = []
    for load in (0.1, 0.5, 0.9):
        made = maker.trial(frame, maker.ceiling_pps * load, test="latency", load=load)
        found.append(made.model_copy(update={"latency": spread(made.latency.n, base_ns / (1.05 - load))}))
    return found
