"""Measures the noise of the machine before and after a measurement and describes it in sentences.

The cores of a virtual machine can be preempted, change frequency, or be moved further apart, and all results change
with them.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
STAT = Path("/proc/stat")
PROBE_S = 0.05
STEAL = 7  # field of a /proc/stat line; the fields after it are included in others

MOST_STEAL = 0.005  # of a core's time; equal to the resolution of a search, which it could shift by as much
LEAST_SHARE = 0.98  # of an otherwise unused core; less is four times the resolution of a search
LONGEST_PAUSE_US = 138.0  # a ring of 2,048 frames fills up in this time at 14.88 Mpps
MOST_FREQUENCY_CHANGE = 0.02  # forwarding slows down in proportion to the frequency
MOST_DISTANCE_CHANGE = 2.0  # on virtual machines near cores are at 75 to 130 ns, distant ones at 400 to 500 ns


@dataclass(frozen=True)
class Look:
    """State of the machine at one time; values that could not be read are absent."""

    stolen: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # by core: stolen ticks and total ticks
    mhz: Mapping[int, float] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)  # fraction of a core that a spinning probe received
    pauses_us: Mapping[int, float] = field(default_factory=dict)  # longest pause seen by the probe
    round_trip_ns: float | None = None  # of a cache line between the two cores


def stolen_ticks(text: str) -> dict[int, tuple[int, int]]:
    """Parse /proc/stat."""
    found = {}
    for words in (line.split() for line in text.splitlines()):
        name = words[0] if words else ""
        if name.startswith("cpu") and name[3:].isdigit() and len(words) > STEAL + 1:
            ticks = [int(word) for word in words[1 : STEAL + 2]]
            found[int(name[3:])] = ticks[STEAL], sum(ticks)
    return found


def frequencies(cpus: Path = CPUS) -> dict[int, float]:
    """Frequency in MHz by core, if the kernel reports it."""
    found = {}
    for file in cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        try:
            found[int(file.parent.parent.name[3:])] = int(file.read_text(encoding="ascii")) / 1000
        except (OSError, ValueError):
            continue
    return found


def probe(core: int, seconds: float = PROBE_S) -> tuple[float, float] | None:
    """Spin on a core: fraction of the core received and longest pause in us; None if not permitted."""
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        return None
    try:
        return spin(seconds)
    finally:
        os.sched_setaffinity(0, allowed)


def spin(seconds: float) -> tuple[float, float]:
    """Spin on the current core."""
    had_ns, began_ns, longest_ns = time.thread_time_ns(), time.perf_counter_ns(), 0
    before_ns = began_ns
    while before_ns - began_ns < seconds * 1e9:
        now_ns = time.perf_counter_ns()
        longest_ns = max(longest_ns, now_ns - before_ns)
        before_ns = now_ns
    return (time.thread_time_ns() - had_ns) / (before_ns - began_ns), longest_ns / 1000


@dataclass(frozen=True)
class Watch:
    """Observes the machine. `aside` suspends the measured programs while their cores are probed."""

    cores: tuple[int, ...] = ()  # cores of the measured programs; empty: read the counters of all cores, without probes
    round_trip_ns: Callable[[], float] | None = None
    aside: Callable[[], AbstractContextManager[object]] = nullcontext

    def look(self) -> Look:
        """Take a snapshot; takes 0.1 s if two cores are probed."""
        stolen, mhz = stolen_ticks(STAT.read_text(encoding="ascii")), frequencies()
        with self.aside():
            probes = {core: found for core in self.cores if (found := probe(core))}
            distance = self.round_trip_ns() if self.round_trip_ns else None
        return Look(
            stolen={core: ticks for core, ticks in stolen.items() if not self.cores or core in self.cores},
            mhz={core: rate for core, rate in mhz.items() if not self.cores or core in self.cores},
            shares={core: share for core, (share, _) in probes.items()},
            pauses_us={core: pause for core, (_, pause) in probes.items()},
            round_trip_ns=distance,
        )


def reasons(before: Look, after: Look) -> tuple[str, ...]:
    """Why the machine was noisy between or during two snapshots, one sentence each; empty if it was quiet."""
    return (
        *steal_reasons(before, after),
        *probe_reasons(before, after),
        *frequency_reasons(before, after),
        *distance_reasons(before, after),
    )


def steal_reasons(before: Look, after: Look) -> Iterator[str]:
    """The hypervisor gave the core to another guest."""
    for core in sorted(before.stolen.keys() & after.stolen.keys()):
        stolen, ticks = (now - then for now, then in zip(after.stolen[core], before.stolen[core], strict=True))
        if ticks > 0 and stolen > MOST_STEAL * ticks:
            yield f"steal: the hypervisor took {stolen / ticks:.1%} of core {core}"


def probe_reasons(before: Look, after: Look) -> Iterator[str]:
    """Another program ran on the core."""
    for core in sorted(before.shares.keys() | after.shares.keys()):
        share = min(look.shares.get(core, 1.0) for look in (before, after))
        pause = max(look.pauses_us.get(core, 0.0) for look in (before, after))
        if share < LEAST_SHARE:
            yield f"share: a probe received only {share:.1%} of core {core}"
        elif pause > LONGEST_PAUSE_US:
            yield f"stalls: a probe was preempted on core {core} for {pause:,.0f} us"


def frequency_reasons(before: Look, after: Look) -> Iterator[str]:
    """The core's frequency changed."""
    for core in sorted(before.mhz.keys() & after.mhz.keys()):
        then, now = before.mhz[core], after.mhz[core]
        if abs(now - then) > MOST_FREQUENCY_CHANGE * max(now, then):
            yield f"frequency: core {core} went from {then:,.0f} to {now:,.0f} MHz"


def distance_reasons(before: Look, after: Look) -> Iterator[str]:
    """The distance between the two cores changed."""
    then, now = before.round_trip_ns, after.round_trip_ns
    if then and now and max(then, now) > MOST_DISTANCE_CHANGE * min(then, now):
        yield f"distance: a cache line took {then:,.0f} ns before and {now:,.0f} ns after from core to core and back"
