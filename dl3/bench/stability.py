"""Reliability of a result: repeated searches, and the noise of the machine meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median_low
from typing import Protocol

from dl3.bench.site import Found
from dl3.dut.bed import Bed
from dl3.host.noise import Watch
from dl3.lab.pair import distance_ns
from dl3.model.trial import Trial, interrupted
from dl3.search.spread import interval, width

MOST_INTERRUPTED = 0.1  # of trials: if one in ten has to be repeated, it is not by accident
MOST_WIDTH = 2.0  # resolutions: searches of a steady device differ by at most one


class Programs(Protocol):
    """Generator and device, as provided by a testbed or a lab."""

    def freeze(self) -> None:
        """Suspend."""

    def thaw(self) -> None:
        """Resume."""


@contextmanager
def standing(programs: Programs) -> Iterator[None]:
    """Suspend the programs while their cores are needed."""
    programs.freeze()
    try:
        yield
    finally:
        programs.thaw()


def watch_of(programs: Programs, cores: Sequence[int], build: Path) -> Watch:
    """Observes the cores of these programs while they are suspended, and the distance between the first two."""
    first, second = (*cores, *cores)[:2]
    distance = (lambda: distance_ns(build, first, second)) if first != second else None
    return Watch(tuple(dict.fromkeys(cores)), distance, lambda: standing(programs))


def watch_of_bed(bed: Bed, build: Path) -> Watch:
    """Observes the cores named by a testbed; if it names none, the whole machine, without probes."""
    lab = bed.facts.get("lab")
    cores = lab.get("cores") if isinstance(lab, Mapping) else None
    return watch_of(bed, [int(core) for core in cores], build) if isinstance(cores, list | tuple) and cores else Watch()


def interruption_reasons(trials: Sequence[Trial]) -> Iterator[str]:
    """Whether the generator often fell behind at rates that it reached in other trials, so it was interrupted."""
    n = len(interrupted(trials))
    if n > MOST_INTERRUPTED * len(trials):
        yield (
            f"interrupted: {n} of {len(trials)} trials were INVALID because the generator fell behind at rates that it "
            "reached in others"
        )


def width_reasons(results: Sequence[float], resolution: float) -> Iterator[str]:
    """Whether results of the same search differ too much."""
    apart = width(results)
    if apart > MOST_WIDTH * resolution:
        yield (
            f"spread: the results of {len(results)} searches differ by {apart:.1%} at a resolution of {resolution:.1%}"
        )


def together(runs: Sequence[Found], noise: Sequence[str]) -> Found:
    """Combine repeated searches for the same goal: the median, and the interval of the result."""
    results = [one.result for one in runs]
    rates = tuple(result.pps for result in results)
    middle = next(one for one in runs if one.result.pps == median_low(rates))
    more = {
        "noise": (*noise, *width_reasons(rates, middle.result.resolution)),
        "n_trials": sum(result.n_trials for result in results),
        "n_invalid": sum(result.n_invalid for result in results),
        "search_seconds": sum(result.search_seconds for result in results),
        "passed_pps": max(result.passed_pps for result in results),
        "repeats_pps": rates if len(rates) > 1 else (),
        "interval_pps": interval(rates),
    }
    return Found(middle.result.model_copy(update=more), middle.best)
