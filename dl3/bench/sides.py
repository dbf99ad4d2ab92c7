"""Common to both sides of a row: settings, entries, their -march, EAL's arguments."""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dl3.bench.onecore import Job, started
from dl3.bench.workplace import BUILD, PEERS, TABLES, Workplace, built
from dl3.lab.tables import TableFiles
from dl3.model.fault import Fault
from dl3.model.sample import Sample
from dl3.record.facts import last_march
from dl3.record.machine import output_of, text_of

MAKER = "tools/build-peers"
ZERO_LOSS_RING = 16384  # same as the lab's links: on a core shared by the hypervisor, a ring must absorb a pause


@dataclass(frozen=True)
class PairSettings:
    """Settings common to both programs of a pair."""

    core: int = 0
    burst: int = 64
    descriptors: int = 2048
    memory_mib: int = 1024


@dataclass(frozen=True)
class Entry:
    """One side of a row."""

    program: str  # a key of MAKERS
    routes: str = "one"
    n_hops: int = 256
    mode: str = "route"
    is_half_load: bool = False
    is_zero_loss: bool = False  # frames arrive at a fixed rate, the highest one without loss
    flows: str = ""  # a key of FLOW_SETS: the flows that arrive, all of which the program has
    rules: int = 0  # of its access list
    macs: str = ""  # a key of MAC_SETS: the addresses between which frames go


class Running(Protocol):
    """A started side; the other one runs while it is paused."""

    def pause(self) -> None:
        """Suspend."""

    def resume(self) -> None:
        """Resume."""

    def measure(self, seconds: float) -> Sample:
        """The rates over `seconds`."""


Start = Callable[[], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Contestant:
    """A side that can be started, and its -march."""

    job: Job
    march: str
    start: Start | None = None  # None: alone on its core

    def started(self, place: Workplace) -> AbstractContextManager[Running]:
        """Start it; it is stopped at the end of the context."""
        return self.start() if self.start else started(self.job, place)


def march_of_build(folder: str) -> str:
    """The -march of dl3d's datapath in one of our builds."""
    commands = text_of(BUILD / folder / "compile_commands.json")
    found = re.search(r'"command": "([^"]*path/worker\.c[^"]*)"', commands)
    if not found:
        raise Fault(f"{BUILD / folder} does not say how dl3d was compiled: run 'make' and {MAKER}")
    return last_march(found[1])


def march_of_distribution() -> str:
    """The -march of the distribution's DPDK, of its testpmd, and of its Open vSwitch."""
    return last_march(output_of("pkg-config", "--cflags", "libdpdk"))


def march_of_peer(name: str) -> str:
    """The -march of a peer built by tools/build-peers."""
    note = built(PEERS / f"{name}.json", MAKER)
    return str(json.loads(note.read_text(encoding="utf-8"))["march"])


def job_of(entry: Entry, settings: PairSettings, command: tuple[str, ...]) -> Job:
    """The common part of all jobs."""
    return Job(
        name=entry.program,
        command=command,
        table=TableFiles(entry.routes, TABLES).destinations(),
        core=settings.core,
        max_burst=settings.burst // 2 if entry.is_half_load else None,
        ring=ZERO_LOSS_RING if entry.is_zero_loss else None,
    )


TWO_PORTS = ("net_null0", "net_null1,no-rx=1")


def eal(settings: PairSettings, place: Workplace, lcores: str, devices: Sequence[str] = TWO_PORTS) -> tuple[str, ...]:
    """EAL's arguments for the peers."""
    return (
        *("--no-pci", "--no-telemetry", "--in-memory", "-m", str(settings.memory_mib), "-d", str(place.plugin)),
        *(word for device in devices for word in ("--vdev", device)),
        *("--lcores", lcores),
        *("--file-prefix", f"dl3-peer{place.next_number()}", "--"),
    )
