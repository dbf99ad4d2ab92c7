"""The lines of the kernel's ring -> what happened on each core, and for how long. Pure."""

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
}  # events that are kept of each core
LEAST_US: dict[What, float] = {"interrupt": 5.0}  # ticks of a timer are shorter
LINE = re.compile(r"^ *(.+)-(\d+) +\[(\d+)\] +\S+ +(\d+)\.(\d{6}): (\w+): (.*)$")
SWITCHED = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=.* ==> next_comm=(.*) next_pid=(\d+) next_prio")
EDGE = re.compile(r"(\w+)_(entry|exit)")
NUMBER = re.compile(r"(?:irq|vec|vector)=(\d+)")
NAME = re.compile(r"name=(\S+)|\[action=(\w+)\]")
FREQUENCY = re.compile(r"state=(\d+) cpu_id=(\d+)")
IDLE = 0


@dataclass
class Diagnosis:
    """What the ring tells of some cores. A core is taken away by each thread that is not its worker."""

    start_ns: int
    workers: Mapping[int, int]  # core: thread
    names: Mapping[int, str]  # of threads that are better known than by their own names
    events: list[Event] = field(default_factory=list)
    runs: dict[int, tuple[int, str]] = field(default_factory=dict)  # core: thread and name
    since: dict[int, int] = field(default_factory=dict)  # core: when it began to run
    begun: dict[tuple[int, str, str], tuple[int, str]] = field(default_factory=dict)

    def read(self, lines: Iterable[str], end_ns: int) -> None:
        """All lines, in the order of time; a thread that is still there stays until the end."""
        for line in lines:
            if found := LINE.match(line):
                self.hear(found, int(found[4]) * 10**9 + int(found[5]) * 1000)
        for core, (thread, name) in self.runs.items():
            self.leave(core, thread, name, end_ns)

    def hear(self, found: re.Match[str], at_ns: int) -> None:
        """One line."""
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
        """One event."""
        self.events.append(Event(what=what, at_ns=at_ns, us=round(us, 3), core=core, who=who))

    def leave(self, core: int, thread: int, name: str, at_ns: int) -> None:
        """A thread has left a core."""
        if thread not in (IDLE, self.workers.get(core)):
            us = (at_ns - self.since.get(core, self.start_ns)) / 1e3
            self.note("switch", at_ns, us, core, self.names.get(thread, name))

    def switch(self, core: int, rest: str, at_ns: int) -> None:
        """One thread leaves, another one comes."""
        if reported := SWITCHED.match(rest):
            self.leave(core, int(reported[2]), reported[1], at_ns)
            self.since[core], self.runs[core] = at_ns, (int(reported[4]), reported[3])

    def edge(self, key: tuple[int, str, str], is_begin: bool, rest: str, at_ns: int) -> None:
        """An interrupt begins or ends; one whose beginning is not known is left out."""
        core, kind, _ = key
        if is_begin:
            name = NAME.search(rest)
            reported = (name[1] or f"softirq {name[2]}") if name else kind.replace("_", " ")
            self.begun[key] = (at_ns, reported)
        elif key in self.begun:
            since_ns, reported = self.begun.pop(key)
            self.note("interrupt", at_ns, (at_ns - since_ns) / 1e3, core, reported)

    def count(self, core: int) -> float:
        """How often another thread was on a core."""
        return sum(1 for event in self.events if event.what == "switch" and event.core == core)

    def longest(self) -> tuple[Event, ...]:
        """Of each core and kind so many, in the order of time."""
        kept: list[Event] = []
        for core, what in sorted({(event.core, event.what) for event in self.events}):
            some = [event for event in self.events if (event.core, event.what) == (core, what)]
            reported = [event for event in some if event.us >= LEAST_US.get(what, 0.0)]
            kept += sorted(reported, key=lambda event: -event.us)[: MOST[what]]
        return tuple(sorted(kept, key=lambda event: event.at_ns))


def evidence_of(seen: Seen) -> Evidence:
    """What the machine did."""
    workers = {core: thread for core, (_, thread) in seen.workers().items()}
    diagnosis = Diagnosis(
        seen.start_ns, workers, {thread: n for thread, n in seen.names().items() if thread not in workers.values()}
    )
    diagnosis.read(seen.lines(), seen.end_ns)
    switches = {} if seen.problem else {f"switches core {core}": diagnosis.count(core) for core in seen.cores}
    return Evidence(events=diagnosis.longest(), totals={**switches, **totals(seen)}, missing=tuple(missing(seen)))
