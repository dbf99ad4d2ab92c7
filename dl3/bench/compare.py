"""Compares two devices under test: both testbeds are open and alternate on the cores (ABAB), the other is suspended."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal

from dl3.bench.far import runner_of
from dl3.bench.site import ProgressListener, Run, facts_of
from dl3.bench.stability import watch_of_bed
from dl3.bench.throughput import Wanted, ceiling_of, find
from dl3.bench.workplace import BUILD
from dl3.dut.bed import Bed
from dl3.dut.beds import open_bed
from dl3.host.noise import reasons
from dl3.model.campaign import Setup, Traffic
from dl3.model.fault import Fault
from dl3.model.results import Versus
from dl3.model.trial import Throughput, Trial
from dl3.record.journal import now
from dl3.search.spread import interval
from dl3.search.throughput import SearchSettings
from dl3.trial.order import Site

Test = Literal["throughput", "forwarding"]
TRIES = 8  # of an INVALID trial


@dataclass(frozen=True)
class Contest:
    """Settings common to both sides."""

    frames: tuple[str, ...]
    record: Path
    test: Test = "forwarding"
    pairs: int = 5
    seconds: float = 1.0
    resolution: float = 0.02
    traffic: Traffic = field(default_factory=Traffic)
    listener: ProgressListener = field(default_factory=ProgressListener)
    campaign: str = field(default_factory=now)


@dataclass(frozen=True)
class Side:
    """A testbed and the trials run on it."""

    bed: Bed
    run: Run

    @property
    def name(self) -> str:
        """Name given by the user."""
        return self.run.site.dut_name


@dataclass(frozen=True)
class Sample:
    """A result of one side."""

    pps: float
    mean_bytes: float


def side_of(bed: Bed, setup: Setup, settings: Contest) -> Side:
    """Everything that trials need."""
    facts = {**facts_of(bed.generator, bed.dut, BUILD), **bed.facts}
    site = Site(bed.generator, bed.dut, setup.dut.name, settings.campaign, facts)
    watch, runner = watch_of_bed(bed, BUILD), runner_of(site, bed.at)
    run = Run(runner, bed.streams, settings.record, settings.seconds, listener=settings.listener, look=watch.look)
    return Side(bed, run)


@contextmanager
def both_open(setups: tuple[Setup, Setup], settings: Contest) -> Iterator[tuple[Side, Side]]:
    """Both testbeds, each suspended unless it is its turn."""
    opening, opening_peer = (
        open_bed(setup, settings.traffic, BUILD) for setup in setups
    )  # checks both, starts neither
    with opening as ours:
        side = side_of(ours, setups[0], settings)
        ours.freeze()
        with opening_peer as peer:
            other = side_of(peer, setups[1], settings)
            peer.freeze()
            yield side, other


def valid_ceiling(run: Run, frame: str) -> Trial:
    """A trial at maximum rate, repeated while it is INVALID."""
    for _ in range(TRIES):
        trial = ceiling_of(run, frame)
        if not trial.invalid:
            return trial
    raise Fault(f"{run.site.dut_name}, frames of {frame}: {TRIES} trials were INVALID; {trial.invalid[0]}")


def measured(side: Side, frame: str, settings: Contest) -> Sample:
    """One result: the received rate at maximum offered load, or the lossless throughput."""
    if settings.test == "forwarding":
        trial = valid_ceiling(side.run, frame)
        return Sample(trial.received_pps, trial.mean_bytes)
    wanted = Wanted((frame,), SearchSettings(resolution=settings.resolution), method="binary")
    result: Throughput = find(side.run, wanted, frame, 0.0)[0].result
    return Sample(result.pps, result.mean_bytes)


@contextmanager
def turn(side: Side) -> Iterator[None]:
    """Use the cores for this side."""
    side.bed.thaw()
    try:
        yield
    finally:
        side.bed.freeze()


def turns(pair: int) -> tuple[int, int]:
    """Which side is measured first, and which second."""
    return pair % 2, 1 - pair % 2


def take_pairs(sides: tuple[Side, Side], frame: str, settings: Contest) -> list[tuple[Sample, Sample]]:
    """All pairs of a frame size; the side measured first alternates."""
    pairs = []
    for i in range(settings.pairs):
        found: dict[int, Sample] = {}
        for number in turns(i):
            with turn(sides[number]):
                found[number] = measured(sides[number], frame, settings)
        pairs.append((found[0], found[1]))
    return pairs


def ratio_of(pairs: Sequence[tuple[Sample, Sample]], names: tuple[str, str]) -> tuple[float, tuple[float, float]]:
    """Ratio of the medians, with its 95 % confidence interval from the ratios within the pairs.

    Both use the same pairs, so each pair must have two rates: Fault otherwise.
    """
    for number, name in enumerate(names):
        n_without = sum(1 for pair in pairs if pair[number].pps <= 0)
        if n_without:
            raise Fault(
                f"{name} has no rate to compare: in {n_without} of {len(pairs)} pairs nothing came back without loss; "
                "look at its trials, then compare again"
            )
    ours, peers = (median(pair[number].pps for pair in pairs) for number in (0, 1))
    ratios = [mine.pps / theirs.pps for mine, theirs in pairs]
    ratio = ours / peers
    return ratio, interval(ratios) or (ratio, ratio)


def compare_frame(sides: tuple[Side, Side], frame: str, settings: Contest) -> Versus:
    """Measure and record one frame size."""
    ours, peer = sides
    with turn(ours):
        before = ours.run.look()
    pairs = take_pairs(sides, frame, settings)
    with turn(ours):
        noise = reasons(before, ours.run.look())
    ratio, bounds = ratio_of(pairs, (ours.name, peer.name))
    result = Versus(
        at=now(),
        campaign=settings.campaign,
        dut=ours.name,
        frame=frame,
        mean_bytes=pairs[0][0].mean_bytes,
        noise=tuple(noise),
        facts={**ours.run.site.facts, "peer": peer.bed.facts["dut"]},
        peer=peer.name,
        test=settings.test,
        ours_pps=tuple(mine.pps for mine, _ in pairs),
        peer_pps=tuple(theirs.pps for _, theirs in pairs),
        ratio=ratio,
        interval=bounds,
    )
    ours.run.keep(result)
    return result


def compare(setups: tuple[Setup, Setup], settings: Contest, report: Callable[[Versus], None]) -> list[Versus]:
    """Measure all frame sizes; `report` is called with each result."""
    results = []
    with both_open(setups, settings) as sides:
        for frame in settings.frames:
            results.append(compare_frame(sides, frame, settings))
            report(results[-1])
    return results
