"""The output of dl3/host/watch.py over an interval, and the totals computed from its two readings."""

import base64
import zlib
from collections.abc import Iterator

from pydantic import Field

from dl3.model.noun import Noun

N_NAMED = 3  # number of interrupt kinds listed by name, per core
LEAST_CHANGE = 0.02  # of a frequency


class Thread(Noun):
    """Counters of one thread since its start."""

    name: str
    cores: str  # allowed cores as a kernel CPU list
    involuntary_switches: int = Field(alias="involuntary switches")
    page_faults: int = Field(alias="page faults")
    ran_ms: float = Field(alias="ran ms")
    waited_ms: float = Field(alias="waited ms")


class Reading(Noun):
    """Counters at one time, by core or by program and thread."""

    steal_ms: dict[int, float] = Field(alias="steal ms")
    interrupts: dict[int, dict[str, int]]
    softirqs: dict[int, dict[str, int]]
    mhz: dict[int, float] = Field(alias="MHz")
    programs: dict[str, dict[int, Thread]]


class Seen(Noun):
    """The complete output. Times are CLOCK_MONOTONIC."""

    cores: tuple[int, ...]
    start_ns: int
    end_ns: int
    before: Reading
    after: Reading
    problem: str  # why there is no trace ring; empty if there is one
    trace: str
    n_forgotten: int

    def lines(self) -> list[str]:
        """The lines of the kernel's trace ring."""
        return zlib.decompress(base64.b64decode(self.trace)).decode().splitlines()

    def ran_ms(self, program: str, tid: int) -> float:
        """CPU time of a thread during the interval."""
        old = self.before.programs.get(program, {}).get(tid)
        return self.after.programs[program][tid].ran_ms - (old.ran_ms if old else 0.0)

    def workers(self) -> dict[int, tuple[str, int]]:
        """Program and thread that own each core: the one that ran most among the threads pinned to it."""
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
        """Names of the programs' threads, prefixed with the program."""
        return {
            tid: thread.name if thread.name.startswith(program) else f"{program}/{thread.name}"
            for program, threads in self.after.programs.items()
            for tid, thread in threads.items()
        }


def rises(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Increase of each counter; counters that did not increase are omitted."""
    found = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: n for name, n in found.items() if n > 0}


def core_totals(seen: Seen, core: int) -> Iterator[tuple[str, float]]:
    """Totals of one core."""
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
    """Totals of a program's threads."""
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
    """All totals, with the names used in dl3.model.evidence."""
    found: dict[str, float] = {}
    for core in seen.cores:
        found |= core_totals(seen, core)
    for program in seen.after.programs:
        found |= program_totals(seen, program)
    return found


def missing(seen: Seen) -> Iterator[str]:
    """One sentence per missing kind of evidence."""
    if seen.problem:
        yield f"threads that took a core, for how long, and times of interrupts: {seen.problem}"
    if seen.n_forgotten:
        yield f"the kernel's trace ring overflowed: {seen.n_forgotten:,} older switches and interrupts are missing"
    if not seen.after.mhz:
        yield "frequency of the cores: this kernel has no cpufreq for them"
    yield from (
        f"threads of {program}: it is no longer running"
        for program, threads in seen.after.programs.items()
        if not threads
    )
