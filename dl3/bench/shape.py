"""How well a device keeps the rates of its subscribers: each is offered more than its rate, and what comes back is logged.

Frames of a strict class, less than the rate, and of the rest, more than what is left, go to every subscriber. A trial in
which workers stalled for longer than a burst bridges is INVALID: its rates would be those of the machine.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from dl3.bench.far import runner_of
from dl3.bench.site import ProgressListener, Run, facts_of
from dl3.bench.stability import watch_of_bed
from dl3.bench.workplace import BUILD
from dl3.control.generator import Logged, Pauses, Results, WorkerPause
from dl3.dut.bed import Bed
from dl3.dut.shaping import FIRST, Subscribers, address, queue_of
from dl3.model.fault import Fault
from dl3.model.shaping import ShapedClass, Shaping
from dl3.model.stream import Stream, first_of
from dl3.model.trial import Trial
from dl3.record.journal import now
from dl3.trial.arrivals import Arrivals, Columns, between, delay_of, jain, read
from dl3.trial.order import Order, Site

Class = Literal["strict", "rest"]
DSCPS: Mapping[Class, int] = {"strict": 46, "rest": 0}  # expedited forwarding is in dl3d's strict class by default
STRICT_SHARE = 0.2  # of each rate; dl3d lets the strict class have half of it
WITHIN = 0.01
MOST_STALLED = 0.001  # of the time: a tenth of the error that a rate may have
CODEL_US = 5000.0  # what waits bridges as long a stall of the generator
LOG_MARGIN = 1.02


class Invalid(Fault):
    """All trials were INVALID."""


@dataclass(frozen=True)
class Plan:
    """One number of subscribers, and what is offered to them."""

    subscribers: Subscribers
    frame: int = 1024  # bytes, including the FCS
    seconds: float = 10.0
    settle_s: float = 1.0  # at the begin, not evaluated: queues fill
    overload: float = 1.5
    retries: int = 2

    @property
    def whole_s(self) -> float:
        """The duration of a trial."""
        return self.settle_s + self.seconds

    def shares(self) -> dict[Class, float]:
        """What is offered in each class, as a fraction of the rate."""
        return {"strict": STRICT_SHARE, "rest": self.overload - STRICT_SHARE}

    def pps(self, bps: float, share: float) -> float:
        """Frames per second of this part of a rate at layer 2."""
        return bps * share / 8 / self.frame

    def total_pps(self) -> float:
        """Of all subscribers and classes."""
        return sum(self.pps(block.bps, self.overload) * block.number for block in self.subscribers.blocks())

    def rates(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Of each subscriber."""
        return np.array([bps for _, _, bps in self.subscribers.each()], dtype=np.float64)


@dataclass(frozen=True)
class Part:
    """The stream of one class to one block of subscribers."""

    name: str
    class_: Class
    first: int
    stream: Stream


def parts_of(plan: Plan, base: Stream) -> list[Part]:
    """All streams, made of one that crosses the device."""
    kept = {k: v for k, v in base.written().items() if k not in ("id", "name", "src_port", "distribution", "seed")}
    first = first_of(kept.get("dst_ip")) or FIRST
    made = []
    for place, block in enumerate(plan.subscribers.blocks()):
        for class_, share in plan.shares().items():
            pps, name = plan.pps(block.bps, share) * block.number, f"{class_}-{place}"
            keys = {
                "name": name,
                "dst_ip": {"first": address(block.first, first), "count": block.number},
                "flows": block.number,
                "dscp": DSCPS[class_],
                "log_arrivals": max(1000, int(pps * plan.whole_s * LOG_MARGIN)),
                "rate": f"{pps:.6f} pps",
            }
            made.append(Part(name, class_, block.first, Stream.model_validate({**kept, **keys})))
    return made


def stall_sentence(who: str, gaps: Sequence[WorkerPause], span: tuple[int, int], bridged_us: float) -> str:
    """Why stalls make the rates of a trial useless; '' if they do not. `span`: of the trial, in ns."""
    inside = [gap.us for gap in gaps if span[0] < gap.at_ns and gap.at_ns - gap.us * 1e3 < span[1]]
    within = [us for us in inside if us > bridged_us]
    lost = sum(us - bridged_us for us in within) * 1e3 / (span[1] - span[0])
    if lost <= MOST_STALLED:
        return ""
    return (
        f"gaps: workers of {who} stalled {len(within):,} times for longer than {bridged_us:,.0f} us, up to "
        f"{max(within):,.0f} us; subscribers can have lost {lost:.2%} of their rates, more than {MOST_STALLED:.1%}"
    )


Logs = Mapping[str, Columns]  # by the name of the stream


@dataclass(frozen=True)
class Shaper:
    """A testbed whose device has these subscribers."""

    run: Run
    bed: Bed
    plan: Plan
    parts: Sequence[Part]

    def trial(self) -> tuple[Trial, Logs]:
        """One trial, recorded, and what dl3gen has logged."""
        streams, plan = tuple(part.stream for part in self.parts), self.plan
        order = Order(streams, str(plan.frame), plan.total_pps(), plan.whole_s, "shaping", warm_up_s=0.0)
        made = self.run.runner.run(order)
        logs, missed = self.logs()
        full = (f"log: {missed:,} frames came when the log of arrivals was full",) if missed else ()
        made = made.model_copy(update={"invalid": (*made.invalid, *self.stalls(made), *full)})
        self.run.keep(made)
        self.run.listener.on_trial(made)
        return made, logs

    def stalls(self, made: Trial) -> list[str]:
        """Stalls of the workers of both programs during a trial that has just ended."""
        site = self.run.site
        timeline = site.generator.ask(Results, "results", timeline=True).timeline
        if not timeline:
            return []
        span = (timeline.start_ns, timeline.start_ns + round(self.plan.whole_s * 1e9))
        sides = [("dl3gen", site.generator, CODEL_US)]
        if site.dut and not site.is_far:
            sides.append((made.dut, site.dut, self.plan.subscribers.bridged_us))
        found = [stall_sentence(who, client.ask(Pauses, "gaps").gaps, span, us) for who, client, us in sides]
        return [sentence for sentence in found if sentence]

    def logs(self) -> tuple[Logs, int]:
        """The logs of all streams, with subscribers in place of flows, and how many frames did not fit."""
        found, missed = dict[str, Columns](), 0
        with tempfile.TemporaryDirectory(prefix="dl3-arrivals-") as folder:
            for part in self.parts:
                path = Path(folder) / part.name
                missed += self.run.site.generator.ask(Logged, "arrivals", stream=part.name, path=str(path)).missed
                found[part.name] = read(path)
                found[part.name]["flow"] += part.first
        return found, missed

    def classes(self, logs: Logs) -> list[ShapedClass]:
        """The delays of each class."""
        found = []
        for name, share in self.plan.shares().items():
            whole = np.concatenate([logs[part.name] for part in self.parts if part.class_ == name])
            delay = delay_of(between(whole, self.plan.settle_s, self.plan.whole_s))
            found.append(ShapedClass(name=name, dscp=DSCPS[name], share=share, delay=delay))
        return found

    def result(self, made: Trial, logs: Logs, n_invalid: int) -> Shaping:
        """What the logs of a valid trial say."""
        plan, site = self.plan, self.run.site
        arrivals = Arrivals.of(list(logs.values()), plan.rates(), plan.settle_s, plan.whole_s)
        shares, burst = arrivals.shares(), arrivals.burst()
        errors = shares - 1
        return Shaping(
            at=now(),
            campaign=site.campaign,
            dut=made.dut,
            wire=self.bed.wire,
            frame=made.frame,
            subscribers=plan.subscribers.number,
            rates_bps=plan.subscribers.rates_bps,
            overload=plan.overload,
            seconds=plan.seconds,
            n_invalid=n_invalid,
            queue=queue_of(self.bed.facts),
            error_mean=float(errors.mean()),
            error_low=float(errors.min()),
            error_high=float(errors.max()),
            within=float((abs(errors) <= WITHIN).mean()),
            silent=int((shares == 0).sum()),
            jain=jain(shares),
            burst_bytes=round(burst.bytes),
            burst_at_us=round(burst.at_ns / 1e3),
            windows=arrivals.windows(),
            classes=tuple(self.classes(logs)),
            facts=dict(site.facts),
        )


def run_with(bed: Bed, name: str, place: tuple[str, Path, ProgressListener], seconds: float) -> Run:
    """The trials of a testbed: `place` is the campaign, the record, and who is told."""
    campaign, record, listener = place
    facts = {**facts_of(bed.generator, bed.dut, BUILD), **bed.facts}
    site = Site(bed.generator, bed.dut, name, campaign, facts)
    watch = watch_of_bed(bed, BUILD)
    return Run(runner_of(site, bed.at), bed.streams, record, seconds, listener=listener, look=watch.look)


def measure(run: Run, bed: Bed, plan: Plan) -> Shaping:
    """The result of the first trial that is valid, recorded. Invalid if none is."""
    shaper = Shaper(run, bed, plan, parts_of(plan, run.streams[0]))
    for n in range(1 + plan.retries):
        run.listener.on_left(str(plan.frame), (1 + plan.retries - n) * (plan.whole_s + run.trial_s_beside))
        made, logs = shaper.trial()
        if not made.invalid:
            result = shaper.result(made, logs, n)
            run.keep(result)
            return result
    raise Invalid(
        f"{plan.subscribers.number:,} subscribers: all {1 + plan.retries} trials were INVALID, the last because "
        f"{made.invalid[0]}"
    )
