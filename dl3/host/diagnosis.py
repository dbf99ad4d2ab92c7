"""Converts the lines of the kernel's trace ring into events per core with their durations. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dl3.host.seen import Seen, missing, totals
from dl3.model.evidence import Event, Evidence, What

MOST: dict[What, int] = {
    "switch": 200,
    "interrupt": 50,
    "page fault": 50,
    "frequency": 50,
}  # maximum number of events kept per core
LEAST_US: dict[What, float] = {"interrupt": 5.0}  # timer ticks are shorter
LINE = re.compile(r"^ *(.+)-(\d+) +\[(\d+)\] +\S+ +(\d+)\.(\d{6}): (\w+): (.*)$")
SWITCHED = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=.* ==> next_comm=(.*) next_pid=(\d+) next_prio")
EDGE = re.compile(r"(\w+)_(entry|exit)")
NUMBER = re.compile(r"(?:irq|vec|vector)=(\d+)")
NAME = re.compile(r"name=(\S+)|\[action=(\w+)\]")
FREQUENCY = re.compile(r"state=(\d+) cpu_id=(\d+)")
IDLE = 0


@dataclass
class Diagnosis:
    """The events of some cores. Any thread other than a core's worker counts as a preemption."""

    start_ns: int
    workers: Mapping[int, int]  # thread id by core
    names: Mapping[int, str]  # display names of threads, where better than their own
    events: list[Event] = field(default_factory=list)
    runs: dict[int, tuple[int, str]] = field(default_factory=dict)  # thread id and name by core
    since: dict[int, int] = field(default_factory=dict)  # start time of the running thread by core
    begun: dict[tuple[int, str, str], tuple[int, str]] = field(default_factory=dict)

    def read(self, lines: Iterable[str], end_ns: int) -> None:
        """Process all lines in time order; a thread still running at the end is counted up to `end_ns`."""
        for line in lines:
            if found := LINE.match(line):
                self.handle(found, int(found[4]) * 10**9 + int(found[5]) * 1000)
        for core, (thread, name) in self.runs.items():
            self.leave(core, thread, name, end_ns)

    def handle(self, found: re.Match[str], at_ns: int) -> None:
        """Process one line."""
        core, kind, rest = int(found[3]), found[6], found[7]
        if kind == "sched_switch":
            self.switch(core, rest, at_ns)
        elif kind == "page_fault_user":
            thread = int(found[2])
            self.note("page fault", at_ns, 0.0, core, self.names.get(thread, found[1]))
        elif kind == "cpu_frequency":
            if reported := FREQUENCY.search(rest):
                self.note("frequency", at_ns, 0.0, int(reported[2]), f"{int(reported[1]) / 1000:,.0f} MHz")
        elif edge := EDGE.fullmatch(kind):
            number = NUMBER.search(rest)
            self.edge((core, edge[1], number[1] if number else ""), edge[2] == "entry", rest, at_ns)

    def note(self, what: What, at_ns: int, us: float, core: int, who: str) -> None:
        """Add an event."""
        self.events.append(Event(what=what, at_ns=at_ns, us=round(us, 3), core=core, who=who))

    def leave(self, core: int, thread: int, name: str, at_ns: int) -> None:
        """A thread stops running on a core."""
        if thread not in (IDLE, self.workers.get(core)):
            us = (at_ns - self.since.get(core, self.start_ns)) / 1e3
            self.note("switch", at_ns, us, core, self.names.get(thread, name))

    def switch(self, core: int, rest: str, at_ns: int) -> None:
        """A context switch."""
        if reported := SWITCHED.match(rest):
            self.leave(core, int(reported[2]), reported[1], at_ns)
            self.since[core], self.runs[core] = at_ns, (int(reported[4]), reported[3])

    def edge(self, key: tuple[int, str, str], is_begin: bool, rest: str, at_ns: int) -> None:
        """Entry or exit of an interrupt; an exit without its entry is ignored."""
        core, kind, _ = key
        if is_begin:
            name = NAME.search(rest)
            reported = (name[1] or f"softirq {name[2]}") if name else kind.replace("_", " ")
            self.begun[key] = (at_ns, reported)
        elif key in self.begun:
            since_ns, reported = self.begun.pop(key)
            self.note("interrupt", at_ns, (at_ns - since_ns) / 1e3, core, reported)

    def count(self, core: int) -> float:
        """Number of switches to other threads on a core."""
        return sum(1 for event in self.events if event.what == "switch" and event.core == core)

    def longest(self) -> tuple[Event, ...]:
        """The longest events per core and kind, in time order."""
        kept: list[Event] = []
        for core, what in sorted({(event.core, event.what) for event in self.events}):
            some = [event for event in self.events if (event.core, event.what) == (core, what)]
            reported = [event for event in some if event.us >= LEAST_US.get(what, 0.0)]
            kept += sorted(reported, key=lambda event: -event.us)[: MOST[what]]
        return tuple(sorted(kept, key=lambda event: event.at_ns))


def evidence_of(seen: Seen) -> Evidence:
    """The machine's evidence for a trial."""
    workers = {core: thread for core, (_, thread) in seen.workers().items()}
    diagnosis = Diagnosis(
        seen.start_ns, workers, {thread: n for thread, n in seen.names().items() if thread not in workers.values()}
    )
    diagnosis.read(seen.lines(), seen.end_ns)
    switches = {} if seen.problem else {f"switches core {core}": diagnosis.count(core) for core in seen.cores}
    return Evidence(events=diagnosis.longest(), totals={**switches, **totals(seen)}, missing=tuple(missing(seen)))
