"""dl3gen and a device under test connected by two links, each on its own cores.

A DPDK device may crash when its peer exits while it polls. The shutdown order is therefore fixed: the generator is
frozen, the device is stopped gracefully, then the frozen generator is killed, so that neither polls a dead peer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from dl3.control.client import DL3GEN, Client
from dl3.control.generator import GeneratorPorts
from dl3.host.interrupts import Held
from dl3.host.sessions import weighed_alone
from dl3.lab.command import run
from dl3.lab.endpoint import Device, Endpoint, Start
from dl3.lab.links import Flows, generator_file, streams
from dl3.lab.process import Process
from dl3.lab.single import START_SECONDS, built, start_process
from dl3.model.fault import Fault

TOP = Path(__file__).resolve().parent.parent.parent
REPLY_TIMEOUT_S = 30.0  # dl3gen may have to generate millions of flows


@dataclass(frozen=True)
class Tester:
    """Settings of dl3gen."""

    cores: tuple[int, ...] = (0,)
    burst: int = 64
    flows: Flows = field(default_factory=Flows)  # of the streams in its configuration file
    idle: str = ""  # 'poll' or 'sleep' between runs; '': default
    build: Path = TOP / "build"


def distance_ns(build: Path, one: int, other: int) -> float:
    """Round trip time of a cache line between two cores; it varies over time by a factor of up to four."""
    program = built(build / "src" / "onecore" / "roundtrip")
    return float(run([str(program), str(one), str(other)], timeout_s=20))


@dataclass
class Pair:
    """Both programs, running."""

    tester: Tester
    endpoint: Endpoint
    device: Device
    generator_process: Process
    round_trips_ns: list[float]  # before the start, at each `look`, after the end

    @property
    def cores(self) -> tuple[int, ...]:
        """Cores of dl3gen, then of the device."""
        return (*self.tester.cores, *self.endpoint.cores)

    @property
    def generator(self) -> Client:
        """Client of dl3gen."""
        return Client(generator_socket(self.endpoint), REPLY_TIMEOUT_S, DL3GEN)

    @property
    def dut(self) -> Client | None:
        """Client of dl3d, if it is the device."""
        return self.device.client

    @property
    def dut_process(self) -> Process:
        """The forwarding process."""
        return self.device.processes[0]

    def freeze(self) -> None:
        """Suspend all processes; another pair can then use the cores."""
        self.generator_process.freeze()
        for process in self.device.processes:
            process.freeze()

    def thaw(self) -> None:
        """Resume, the device first, so that it polls when dl3gen resumes."""
        for process in reversed(self.device.processes):
            process.thaw()
        self.generator_process.thaw()

    def look(self) -> float:
        """Measure the round trip between the cores now, with all processes suspended."""
        self.freeze()
        try:
            self.round_trips_ns.append(distance_ns(self.tester.build, self.tester.cores[0], self.endpoint.core))
        finally:
            self.thaw()
        return self.round_trips_ns[-1]

    def facts(self) -> dict[str, object]:
        """Facts recorded with results from this lab."""
        endpoint = self.endpoint
        return {
            "wire": endpoint.links.name,
            "dut": self.device.name,
            "cores": list(self.cores),
            "descriptors": endpoint.descriptors,
            "burst": endpoint.burst,
            "memory_mib": endpoint.memory_mib,
            "page_kib": endpoint.page_kib,
            "channels": endpoint.channels,
            "round_trips_ns": list(self.round_trips_ns),
        }

    def check_alive(self) -> None:
        """Fault if a process has exited."""
        self.generator_process.check_alive()
        for process in self.device.processes:
            process.check_alive()


def generator_socket(endpoint: Endpoint) -> Path:
    """The control socket of dl3gen."""
    return endpoint.links.folder / "dl3gen.sock"


def links_are_up(generator: Client) -> bool:
    """Whether both links are up, as reported by dl3gen."""
    try:
        return all(port.link_up for port in generator.ask(GeneratorPorts, "ports").ports)
    except Fault:
        return False


def start_generator(tester: Tester, endpoint: Endpoint) -> Process:
    """Start dl3gen with its own configuration file."""
    file = endpoint.links.folder / "dl3gen.yaml"
    whole = generator_file(endpoint.links, tester.cores, tester.burst, streams(tester.flows))
    idle = {"idle": tester.idle} if tester.idle else {}
    file.write_text(yaml.safe_dump(whole | idle, sort_keys=False), encoding="utf-8")
    command = (str(built(tester.build / "src" / "dl3gen")), str(file))
    return start_process("dl3gen", endpoint.links.enter("client", *command), endpoint.links.folder)


@contextmanager
def pair(start: Start, endpoint: Endpoint, tester: Tester, found_ns: list[float]) -> Iterator[Pair]:
    """Start the device, then dl3gen, and wait until their links are up."""
    generator: Process | None = None
    try:
        with weighed_alone(), start(endpoint) as device:
            try:
                with Held():
                    generator = start_generator(tester, endpoint)
                client = Client(generator_socket(endpoint))
                generator.wait_until(lambda: links_are_up(client), "had its links up", START_SECONDS)
                made = Pair(tester, endpoint, device, generator, found_ns)
                made.check_alive()
                yield made
            finally:
                if generator:
                    generator.freeze()
    finally:
        if generator:
            generator.kill()
