"""What dl3/host/watch.py prints of a stretch of time, and the sums that can be drawn from its two readings."""

import base64
import zlib
from collections.abc import Iterator

from pydantic import Field

from dl3.model.noun import Noun

N_NAMED = 3  # kinds of interrupts that are told by name, of each core
LEAST_CHANGE = 0.02  # of a frequency


class Thread(Noun):
    """One thread, since its beginning."""

    name: str
    cores: str  # that it may run on, as the kernel writes lists
    involuntary_switches: int = Field(alias="involuntary switches")
    page_faults: int = Field(alias="page faults")
    ran_ms: float = Field(alias="ran ms")
    waited_ms: float = Field(alias="waited ms")


class Reading(Noun):
    """Counters of one moment, by core or by program and thread."""

    steal_ms: dict[int, float] = Field(alias="steal ms")
    interrupts: dict[int, dict[str, int]]
    softirqs: dict[int, dict[str, int]]
    mhz: dict[int, float] = Field(alias="MHz")
    programs: dict[str, dict[int, Thread]]


class Seen(Noun):
    """All of it. Times are of CLOCK_MONOTONIC."""

    cores: tuple[int, ...]
    start_ns: int
    end_ns: int
    before: Reading
    after: Reading
    problem: str  # why there is no ring; empty: there is one
    trace: str
    n_forgotten: int

    def lines(self) -> list[str]:
        """Of the kernel's ring."""
        return zlib.decompress(base64.b64decode(self.trace)).decode().splitlines()

    def ran_ms(self, program: str, tid: int) -> float:
        """How long a thread ran meanwhile."""
        old = self.before.programs.get(program, {}).get(tid)
        return self.after.programs[program][tid].ran_ms - (old.ran_ms if old else 0.0)

    def workers(self) -> dict[int, tuple[str, int]]:
        """Program and thread that has each core: of those that may run nowhere else the one that ran most."""
        found: dict[int, tuple[str, int]] = {}
        for core in self.cores:
            own = [
                (program, tid)
                for program, threads in self.after.programs.items()
                for tid, thread in threads.items()
                if thread.cores == str(core)
            ]
            if own:
                found[core] = max(own, key=lambda one: self.ran_ms(*one))
        return found

    def names(self) -> dict[int, str]:
        """Of the programs' threads, with the program before it."""
        return {
            tid: thread.name if thread.name.startswith(program) else f"{program}/{thread.name}"
            for program, threads in self.after.programs.items()
            for tid, thread in threads.items()
        }


def rises(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """By how much each counter rose; those that did not are left out."""
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: n for name, n in found.items() if n > 0}


def core_totals(seen: Seen, core: int) -> Iterator[tuple[str, float]]:
    """What came over one core."""
    for what in ("interrupts", "softirqs"):
        rose = rises(getattr(seen.before, what).get(core, {}), getattr(seen.after, what).get(core, {}))
        yield f"{what} core {core}", sum(rose.values())
        most = sorted(rose, key=lambda name: -rose[name])[:N_NAMED]
        yield from ((f"{what} core {core}: {name}", rose[name]) for name in most)
    if core in seen.before.steal_ms and core in seen.after.steal_ms:
        yield f"steal ms core {core}", seen.after.steal_ms[core] - seen.before.steal_ms[core]
    if core in seen.after.mhz:
        yield f"MHz core {core}", seen.after.mhz[core]
        yield f"MHz before core {core}", seen.before.mhz.get(core, seen.after.mhz[core])


def program_totals(seen: Seen, program: str) -> Iterator[tuple[str, float]]:
    """What became of a program's threads."""
    before, after = seen.before.programs.get(program, {}), seen.after.programs.get(program, {})
    faults = sum(
        thread.page_faults - (before[tid].page_faults if tid in before else 0) for tid, thread in after.items()
    )
    yield f"page faults {program}", faults
    for core, (owner, tid) in seen.workers().items():
        if owner == program and tid in before:
            old, new = before[tid], after[tid]
            yield f"involuntary switches {program} core {core}", new.involuntary_switches - old.involuntary_switches
            yield f"waited ms {program} core {core}", round(new.waited_ms - old.waited_ms, 3)


def totals(seen: Seen) -> dict[str, float]:
    """By names as dl3.model.evidence has them."""
    found: dict[str, float] = {}
    for core in seen.cores:
        found |= core_totals(seen, core)
    for program in seen.after.programs:
        found |= program_totals(seen, program)
    return found


def missing(seen: Seen) -> Iterator[str]:
    """One sentence for each kind of evidence that there is none of."""
    if seen.problem:
        yield f"who took a core, for how long, and interrupts by time: {seen.problem}"
    if seen.n_forgotten:
        yield f"the kernel's ring had no room for {seen.n_forgotten:,} older switches and interrupts"
    if not seen.after.mhz:
        yield "frequency of the cores: this kernel has no cpufreq for them"
    yield from (
        f"threads of {program}: it is not there any more"
        for program, threads in seen.after.programs.items()
        if not threads
    )
