"""dl3gen and a forwarder over two memif links on two cores, one each.

A memif device of DPDK may crash when its peer leaves while it polls. So the end is always the same: the generator is
frozen, the forwarder ends in order, then the frozen generator is ended at once; neither ever polls a dead peer.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dl3.control.client import Client
from dl3.control.generator import GeneratorPorts
from dl3.control.replies import Reply
from dl3.host.hugepages import reserved
from dl3.lab.command import run
from dl3.lab.links import Flows, Links, generator_file, streams
from dl3.lab.process import Process
from dl3.lab.seat import Dut, Seat
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 60.0
PAGE_MIB = 2


@dataclass(frozen=True)
class MemifTerms:
    """What the lab is made of."""

    dut: Dut
    flows: Flows = field(default_factory=Flows)
    generator_core: int = 0
    dut_cores: tuple[int, ...] = (1,)
    ring_bits: int = 14  # 16,384 frames: on cores that others use too a pause must fit into a ring
    is_zero_copy: bool = True  # of dl3gen's ends
    burst: int = 64  # frames that the forwarder takes at a time
    generator_burst: int = 64
    dut_mib: int = 256  # EAL's memory
    generator_mib: int = 512  # kept free for dl3gen, which takes what it needs
    build: Path = TOP / "build"

    @property
    def pages(self) -> int:
        """Huge pages of 2 MiB for both."""
        return (self.dut_mib + self.generator_mib) // PAGE_MIB


def distance_ns(build: Path, first: int, second: int) -> float:
    """How long a cache line takes to the other core and back; it changes by a factor of four from time to time."""
    program = built(build / "src" / "onecore" / "roundtrip")
    return float(run([str(program), str(first), str(second)], timeout_s=20))


def round_trip_ns(terms: MemifTerms) -> float:
    """The distance between dl3gen's core and the forwarder's first one."""
    return distance_ns(terms.build, terms.generator_core, terms.dut_cores[0])


def built(path: Path) -> Path:
    """The path, when it is there."""
    if not path.exists():
        raise Fault(f"{path} is not built: run 'make' first")
    return path


@dataclass
class MemifLab:
    """Both programs, running; `dut` is None when the forwarder answers no questions."""

    terms: MemifTerms
    seat: Seat
    forwarder: Dut
    generator_process: Process
    dut_process: Process
    generator: Client
    dut: Client | None
    round_trips_ns: list[float]  # before the start, at each `look`, after the end

    def freeze(self) -> None:
        """Both stand still; another lab may then have the cores."""
        self.generator_process.freeze()
        self.dut_process.freeze()

    def thaw(self) -> None:
        """The forwarder first, so that dl3gen finds it polling."""
        self.dut_process.thaw()
        self.generator_process.thaw()

    def look(self) -> float:
        """Measure the round trip between the cores now, with both programs frozen for a moment."""
        self.freeze()
        try:
            self.round_trips_ns.append(round_trip_ns(self.terms))
        finally:
            self.thaw()
        return self.round_trips_ns[-1]

    def facts(self) -> dict[str, object]:
        """What belongs into the record of a figure that comes from here."""
        return {
            "wire": "memif, one core each",
            "dut": self.forwarder.name,
            "cores": [self.terms.generator_core, *self.terms.dut_cores],
            "ring_frames": 1 << self.terms.ring_bits,
            "generator_is_zero_copy": self.terms.is_zero_copy,
            "burst": self.terms.burst,
            "round_trips_ns": list(self.round_trips_ns),
        }

    def check_alive(self) -> None:
        """Complain when one of them has left."""
        self.generator_process.check_alive()
        self.dut_process.check_alive()


def answers(client: Client) -> bool:
    """Whether somebody does."""
    try:
        client.ask(Reply, "status")
    except Fault:
        return False
    return True


def links_are_up(generator: Client) -> bool:
    """Both, as dl3gen sees them."""
    try:
        return all(port.link_up for port in generator.ask(GeneratorPorts, "ports").ports)
    except Fault:
        return False


def start_process(name: str, command: Sequence[str], seat: Seat) -> Process:
    """With its log and EAL's own files in the private folder; on any core, whatever we ourselves keep to."""
    folder, cores = seat.links.folder, f"0-{(os.cpu_count() or 1) - 1}"
    pinned = ["taskset", "--cpu-list", cores, *command]
    return Process(name, pinned, folder / f"{name}.log", {"RUNTIME_DIRECTORY": str(folder)})


def is_listening(dut: Dut, seat: Seat) -> bool:
    """Whether dl3gen may come: the forwarder, server of both links, waits at them."""
    socket = dut.socket(seat)
    return all(seat.links.socket(i).exists() for i in range(2)) and (not socket or answers(Client(socket)))


def start_generator(terms: MemifTerms, seat: Seat) -> Process:
    """dl3gen on a file of its own."""
    file = seat.links.folder / "dl3gen.yaml"
    whole = generator_file(seat.links, terms.generator_core, terms.generator_burst, streams(terms.flows))
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return start_process("dl3gen", (str(built(terms.build / "src" / "dl3gen")), str(file)), seat)


def end(forwarder: Process, generator: Process | None) -> None:
    """Neither polls a peer that has left: dl3gen stands still while the forwarder ends, and never goes on."""
    if generator:
        generator.freeze()
    try:
        forwarder.thaw()
        forwarder.stop()
    finally:
        if generator:
            generator.kill()


@contextmanager
def both_running(terms: MemifTerms, folder: Path, found_ns: list[float]) -> Iterator[MemifLab]:
    """Both programs in a folder of theirs."""
    dut = terms.dut
    seat = Seat(Links(folder, terms.ring_bits, terms.is_zero_copy), terms.dut_cores, terms.burst, terms.dut_mib)
    client, socket = Client(folder / "dl3gen.sock"), dut.socket(seat)
    forwarder, generator = start_process(dut.name, dut.command(seat), seat), None
    try:
        forwarder.wait_until(lambda: is_listening(dut, seat), "was ready", START_SECONDS)
        generator = start_generator(terms, seat)
        generator.wait_until(lambda: links_are_up(client), "had its links up", START_SECONDS)
        forwarder.check_alive()
        yield MemifLab(
            terms=terms,
            seat=seat,
            forwarder=dut,
            generator_process=generator,
            dut_process=forwarder,
            generator=client,
            dut=Client(socket) if socket else None,
            round_trips_ns=found_ns,
        )
    finally:
        end(forwarder, generator)


@contextmanager
def memif_lab(terms: MemifTerms) -> Iterator[MemifLab]:
    """The lab, ready to send; all of it is gone afterwards, huge pages too."""
    found_ns = [round_trip_ns(terms)]
    with (
        reserved(terms.pages),
        tempfile.TemporaryDirectory(prefix="dl3-memif-") as name,
        both_running(terms, Path(name), found_ns) as lab,
    ):
        yield lab
    found_ns.append(round_trip_ns(terms))
