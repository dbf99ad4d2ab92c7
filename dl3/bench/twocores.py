"""A forwarder on its own core and dl3gen on another: the forwarding rate under overload."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.bench.onecore import Job
from dl3.bench.sides import MAKER, Contestant, Entry, PairSettings, march_of_build, march_of_peer
from dl3.bench.workplace import BUILD, PEERS, built
from dl3.control.generator import Results, Started
from dl3.dut.dl3d import Dl3d
from dl3.dut.l3fwd import L3fwd
from dl3.host.cores import usable
from dl3.host.threads import CpuTime, cpu_time
from dl3.lab.links import Flows, streams
from dl3.lab.memif import MemifLab, MemifSettings, memif_lab
from dl3.lab.single import Dut
from dl3.model.fault import Fault
from dl3.model.sample import Sample

LEAST_OVERLOAD = 1.2  # offered / accepted by the forwarder; below this, its own limit was not measured
# On near cores dl3gen mostly offers 1.4 to 2 times the accepted rate, occasionally only 1.16 times for a whole start;
# with rings of 1,024, bursts of 64, or both, mostly 1.1 times.
RING_BITS = 8
GENERATOR_BURST = 32
SETTLE_SECONDS = 0.3
LEAST_SHARE = 0.95  # of both cores; with less, frames were refused because the forwarder was not running
TRIES = 5  # of a run with too little offered load, or disturbed by other programs
FLOWS = Flows()
ROW_OF_MEMIF = (
    "64-byte frames over memif, rings of 256, dl3gen on the other core, which takes 32 at a time, one IPv4 route, one "
    "direction; Mpps that came back to dl3gen; drivers within dl3d are plugins to l3fwd"
)


class NoRow(Fault):
    """A comparison that is not possible here and now; the others continue."""


def cpu_times(lab: MemifLab) -> tuple[CpuTime, CpuTime]:
    """Of the workers of dl3gen and of the forwarder so far."""
    generator, dut = lab.generator_process.process.pid, lab.dut_process.process.pid
    return cpu_time(generator, lab.tester.cores[0]), cpu_time(dut, lab.endpoint.core)


@dataclass(frozen=True)
class MemifRun:
    """What a run offered, and what the forwarder accepted."""

    results: Results
    shares: tuple[float, float]  # of both cores, left by other programs

    @property
    def offered(self) -> int:
        """Offered frames, including refused ones."""
        return sum(stream.sent for stream in self.results.streams)

    @property
    def taken(self) -> int:
        """Frames accepted by the forwarder's ring."""
        return self.offered - sum(stream.refused for stream in self.results.streams)

    @property
    def overload(self) -> float:
        """Offered / accepted."""
        return self.offered / max(self.taken, 1)

    @property
    def is_quiet(self) -> bool:
        """Both programs had their cores to themselves."""
        return min(self.shares) >= LEAST_SHARE

    @property
    def counts(self) -> bool:
        """The forwarding rate is the forwarder's limit."""
        return self.is_quiet and self.overload >= LEAST_OVERLOAD


def most_loaded(name: str, runs: Sequence[MemifRun]) -> MemifRun:
    """The run with the highest overload; NoRow if that was too low."""
    quiet = [run for run in runs if run.is_quiet]
    if not quiet:
        share = max(min(run.shares) for run in runs)
        raise NoRow(f"no row memif-2-core: other programs left {share:.0%} of the cores, {LEAST_SHARE:.0%} is needed")
    best = max(quiet, key=lambda run: run.overload)
    if best.overload < LEAST_OVERLOAD:
        raise NoRow(
            f"no row memif-2-core: dl3gen offered {name} only {best.overload:.2f} times the "
            f"{best.taken / best.results.seconds / 1e6:.1f} Mpps that it took, {LEAST_OVERLOAD} is needed: dl3gen's "
            "core is the limit, not the forwarder's"
        )
    return best


def sample_of(run: MemifRun) -> Sample:
    """The received rate over the run."""
    results = run.results
    seconds, came = results.seconds, sum(stream.received for stream in results.streams)
    if seconds <= 0 or came <= 0:
        raise Fault("nothing came back from the forwarder over memif: look at its routes and links")
    return Sample(
        seconds=seconds,
        core_share=min(run.shares),
        received_pps=run.taken / seconds,
        sent_pps=came / seconds,
        cycles_per_packet=results.tsc_hz * seconds / came,
    )


@dataclass
class MemifRunner:
    """Both programs of a lab; they are suspended and resumed together, because neither may lose its peer."""

    lab: MemifLab

    def pause(self) -> None:
        """Suspend."""
        self.lab.freeze()

    def resume(self) -> None:
        """Resume."""
        self.lab.thaw()

    def finish(self) -> Results:
        """Wait for the end of the run."""
        results = self.lab.generator.ask(Results, "results")
        while results.state == "sending":
            self.lab.check_alive()
            time.sleep(0.05)
            results = self.lab.generator.ask(Results, "results")
        time.sleep(0.05)  # for frames in flight
        return self.lab.generator.ask(Results, "results")

    def run(self, seconds: float) -> MemifRun:
        """At dl3gen's maximum rate."""
        before = cpu_times(self.lab)
        self.lab.generator.ask(Started, "send", streams=streams(FLOWS, "max"), seconds=seconds)
        results = self.finish()
        after = cpu_times(self.lab)
        return MemifRun(results, (after[0].share_since(before[0]), after[1].share_since(before[1])))

    def measure(self, seconds: float) -> Sample:
        """One run, repeated while the offered load was too low or other programs used the cores."""
        time.sleep(SETTLE_SECONDS)
        runs: list[MemifRun] = []
        while len(runs) < TRIES and not (runs and runs[-1].counts):
            runs.append(self.run(seconds))
        return sample_of(most_loaded(self.lab.device.name, runs))


@contextmanager
def memif_started(dut: Dut, terms: PairSettings) -> Iterator[MemifRunner]:
    """A lab with this forwarder on the measured core and dl3gen on another."""
    others = sorted(set(usable()) - {terms.core})
    if not others:
        raise NoRow("no row memif-2-core: it needs a second core for dl3gen")
    lab_terms = MemifSettings(
        dut=dut,
        flows=FLOWS,
        generator_core=others[0],
        dut_cores=(terms.core,),
        ring_bits=RING_BITS,
        burst=terms.burst,
        generator_burst=GENERATOR_BURST,
        dut_mib=terms.memory_mib,
        build=BUILD,
    )
    with memif_lab(lab_terms) as lab:
        yield MemifRunner(lab)


def contestant_of(dut: Dut, program: Path, entry: Entry, terms: PairSettings, march: str) -> Contestant:
    """A side that has its own generator."""
    job = Job(entry.program, (str(program),), Path("memif"), core=terms.core)
    return Contestant(job, march, lambda: memif_started(dut, terms))


def make_memif_dl3d(folder: str, entry: Entry, terms: PairSettings) -> Contestant:
    """dl3d of one of our builds."""
    program = built(BUILD / folder / "src" / "dl3d", "make")
    return contestant_of(Dl3d(program), program, entry, terms, march_of_build(folder))


def make_memif_l3fwd(entry: Entry, terms: PairSettings) -> Contestant:
    """The same l3fwd as on one core."""
    program = built(PEERS / "l3fwd" / "program", MAKER)
    return contestant_of(L3fwd(program), program, entry, terms, march_of_peer("l3fwd"))
