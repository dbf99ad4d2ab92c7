"""Trials with dl3d on another machine: activity of both machines, dl3gen and dl3d, on one clock."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dl3.control.client import Client
from dl3.control.generator import Pauses
from dl3.control.remote import Machine, run_python
from dl3.control.replies import Workers
from dl3.host.watching import MachineWatch
from dl3.model.evidence import OF_THE_OTHER, Evidence
from dl3.trial.order import Site
from dl3.trial.run import Runner
from dl3.trial.seen import Status

TRIES = 9  # number of readings of the other clock; the one with the shortest round trip counts


@dataclass(frozen=True)
class Clock:
    """CLOCK_MONOTONIC of the other machine."""

    ahead_ns: int
    error_ns: int  # maximum error

    @classmethod
    def of(cls, dut: Client) -> "Clock":
        """Read through dl3d; a reply with a short round trip has a small error."""
        found = []
        for _ in range(TRIES):
            before = time.monotonic_ns()
            there = dut.ask(Pauses, "gaps").now_ns
            after = time.monotonic_ns()
            found.append(cls(there - (before + after) // 2, (after - before) // 2))
        return min(found, key=lambda clock: clock.error_ns)


@dataclass
class FarWatch:
    """One watch per machine; the other machine's evidence is converted to the local clock."""

    at: Machine
    dut: Client
    clock: Clock
    here: MachineWatch = field(default_factory=MachineWatch)
    there: MachineWatch = field(init=False)

    @classmethod
    def of(cls, at: Machine, dut: Client) -> "FarWatch":
        """With the current offset of the other clock."""
        return cls(at, dut, Clock.of(dut))

    def __post_init__(self) -> None:
        """Set up the watch on the other machine, run by its Python."""
        self.there = MachineWatch(partial(run_python, self.at), owner=0)

    def start(self, cores: Sequence[int], processes: Mapping[str, int]) -> None:
        """See dl3.trial.seen.Watch; cores and processes are those of this machine."""
        workers = {worker.core for worker in self.dut.ask(Workers, "workers").workers}
        self.there.start(sorted(workers), {"dl3d": self.dut.ask(Status, "status").pid})
        try:
            self.here.start(cores, processes)
        except BaseException:
            self.there.stop()  # nothing else would stop it
            raise

    def stop(self) -> Evidence:
        """Evidence of both machines."""
        try:
            here = self.here.stop()
        finally:
            there = self.there.stop()
        moved = tuple(
            event.model_copy(update={"at_ns": event.at_ns - self.clock.ahead_ns, "is_elsewhere": True})
            for event in there.events
        )
        us = self.clock.error_ns / 1000
        return Evidence(
            events=tuple(sorted((*here.events, *moved), key=lambda event: event.at_ns)),
            totals=here.totals | {f"{name} {OF_THE_OTHER}": value for name, value in there.totals.items()},
            missing=(
                *here.missing,
                *(f"{self.at}: {sentence}" for sentence in there.missing),
                f"offset between the clocks of both machines, to better than {us:,.0f} us",
            ),
        )


def runner_of(site: Site, at: Machine | None) -> Runner:
    """A runner that also observes the machines; `at` is the device's machine if it is not this one.

    The offset of the other clock is read now. Clocks drift by tens of milliseconds per hour, so a campaign creates a
    runner for each job.
    """
    if not at or not site.dut:
        return Runner(site, watch=MachineWatch())
    watch = FarWatch.of(at, site.dut)
    return Runner(replace(site, far_ahead_ns=watch.clock.ahead_ns), watch=watch)
