"""A forwarder on a core of its own, dl3gen on another: what it forwards when more is offered than it takes."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.bench.onecore import Job
from dl3.bench.sides import MAKER, Contestant, Entry, Terms, march_of_build, march_of_peer
from dl3.bench.workplace import BUILD, PEERS, built
from dl3.control.generator import Results, Started
from dl3.lab.duts import Dl3d, Dut, L3fwd
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifTerms, memif_lab
from dl3.model.fault import Fault
from dl3.model.sample import Sample

LEAST_OVERLOAD = 1.2  # offered / what the forwarder takes; below, its own limit was not what was measured
RING_BITS = 10
SETTLE_SECONDS = 0.3
FLOWS = Flows(number=65_000)
ROW_OF_MEMIF = (
    "64-byte frames over memif, dl3gen on the other core, one IPv4 route, one direction; Mpps that came back to dl3gen"
)


class NoRow(Fault):
    """A comparison that cannot be made here and now; the others go on."""


def busy_seconds(lab: MemifLab) -> tuple[float, float]:
    """Processor time that dl3gen and the forwarder have had."""
    return lab.generator_process.busy_seconds(), lab.dut_process.busy_seconds()


def check_overload(name: str, offered: int, taken: int) -> None:
    """Leave without a row when the generator was the limit."""
    if offered < LEAST_OVERLOAD * taken:
        raise NoRow(
            f"no row memif-2-core: dl3gen offered {name} only {offered / max(taken, 1):.2f} times what it took, wanted "
            f"is {LEAST_OVERLOAD}: the generator's core is the limit, not the forwarder's"
        )


def sample_of(results: Results, shares: tuple[float, float]) -> Sample:
    """What came back in the time of the run."""
    seconds, came = results.seconds, sum(stream.received for stream in results.streams)
    if seconds <= 0 or came <= 0:
        raise Fault("nothing came back from the forwarder over memif: look at its routes and links")
    return Sample(
        seconds=seconds,
        core_share=min(shares),
        received_pps=sum(stream.sent - stream.refused for stream in results.streams) / seconds,
        sent_pps=came / seconds,
        cycles_per_packet=results.tsc_hz * seconds / came,
    )


@dataclass
class MemifRunner:
    """Both programs of a lab; they stand still and go on together, for neither may lose its peer."""

    lab: MemifLab

    def pause(self) -> None:
        """Stand still."""
        self.lab.freeze()

    def resume(self) -> None:
        """Go on."""
        self.lab.thaw()

    def finish(self) -> Results:
        """Wait for the end of the run."""
        results = self.lab.generator.ask(Results, "results")
        while results.state == "sending":
            self.lab.check_alive()
            time.sleep(0.05)
            results = self.lab.generator.ask(Results, "results")
        time.sleep(0.05)  # for what is under way
        return self.lab.generator.ask(Results, "results")

    def measure(self, seconds: float) -> Sample:
        """One run at the highest rate."""
        time.sleep(SETTLE_SECONDS)
        before, start = busy_seconds(self.lab), time.monotonic()
        self.lab.generator.ask(Started, "send", streams=streams(FLOWS, "max"), seconds=seconds)
        results = self.finish()
        after, passed = busy_seconds(self.lab), time.monotonic() - start
        offered = sum(stream.sent for stream in results.streams)
        refused = sum(stream.refused for stream in results.streams)
        check_overload(self.lab.forwarder.name, offered, offered - refused)
        return sample_of(results, ((after[0] - before[0]) / passed, (after[1] - before[1]) / passed))


@contextmanager
def memif_started(dut: Dut, terms: Terms) -> Iterator[MemifRunner]:
    """A lab with this forwarder on the measured core and dl3gen on another."""
    others = sorted(set(range(os.cpu_count() or 1)) - {terms.core})
    if not others:
        raise NoRow("no row memif-2-core: it needs a second core for dl3gen")
    lab_terms = MemifTerms(
        dut=dut,
        flows=FLOWS,
        generator_core=others[0],
        dut_core=terms.core,
        ring_bits=RING_BITS,
        burst=terms.burst,
        dut_mib=terms.memory_mib,
        build=BUILD,
    )
    with memif_lab(lab_terms) as lab:
        yield MemifRunner(lab)


def contestant_of(dut: Dut, program: Path, entry: Entry, terms: Terms, march: str) -> Contestant:
    """A side that brings its own generator."""
    job = Job(entry.program, (str(program),), Path("memif"), core=terms.core)
    return Contestant(job, march, lambda: memif_started(dut, terms))


def make_memif_dl3d(entry: Entry, terms: Terms) -> Contestant:
    """dl3d of the build."""
    program = built(BUILD / "src" / "dl3d", "make")
    return contestant_of(Dl3d(program), program, entry, terms, march_of_build("."))


def make_memif_l3fwd(entry: Entry, terms: Terms) -> Contestant:
    """l3fwd as for one core."""
    program = built(PEERS / "l3fwd" / "program", MAKER)
    return contestant_of(L3fwd(program), program, entry, terms, march_of_peer("l3fwd"))
