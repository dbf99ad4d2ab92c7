"""Devices under test that consist of a single program started by a command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dl3.control.client import Client
from dl3.control.replies import Reply
from dl3.host.cores import listed, usable
from dl3.host.interrupts import Held
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.process import Process, end_all
from dl3.model.fault import Fault

START_SECONDS = 60.0


class Dut(Protocol):
    """How a device is named and started."""

    @property
    def name(self) -> str:
        """Name used in records."""

    @property
    def ready_words(self) -> str:
        """Output that shows its ports have started; '' for a device with a control socket."""

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """Write its files into the links' folder; returns the command that starts it."""

    def socket(self, endpoint: Endpoint) -> Path | None:
        """Its control socket, if it has one."""


def built(path: Path) -> Path:
    """The path; Fault if it does not exist."""
    if not path.exists():
        raise Fault(f"{path} is not built: run 'make' first")
    return path


def is_ready(client: Client) -> bool:
    """Whether the program replies on its socket."""
    try:
        client.ask(Reply, "status")
    except Fault:
        return False
    return True


def start_process(name: str, command: Sequence[str], folder: Path) -> Process:
    """Start with its log and EAL's files in the private folder; on any usable core, regardless of our own affinity."""
    pinned = ["taskset", "--cpu-list", listed(usable()), *command]
    return Process(name, pinned, folder / f"{name}.log", {"RUNTIME_DIRECTORY": str(folder)})


@dataclass
class Running:
    """See dl3.lab.endpoint.Device."""

    dut: Dut
    endpoint: Endpoint
    processes: list[Process] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name used in records."""
        return self.dut.name

    @property
    def client(self) -> Client | None:
        """Client of its control socket, if it has one."""
        socket = self.dut.socket(self.endpoint)
        return Client(socket) if socket else None

    def start(self) -> None:
        """Return once dl3gen can be started."""
        command = self.endpoint.links.enter("server", *self.dut.command(self.endpoint))
        with Held():
            self.processes[:] = [start_process(self.name, command, self.endpoint.links.folder)]
        self.processes[0].wait_until(self._is_listening, "was ready", START_SECONDS)

    def restart(self) -> None:
        """Kill and restart it, as after a crash."""
        self.processes[0].kill()
        self.start()

    def reset_port(self) -> None:
        """Reset the device's end of the first link."""
        self.endpoint.links.reset_port()

    def _is_listening(self) -> bool:
        client = self.client
        words = self.processes[0].log.read_text(encoding="utf-8", errors="replace")
        has_started = is_ready(client) if client else self.dut.ready_words in words
        return has_started and self.endpoint.links.is_listening()


@contextmanager
def started(dut: Dut, endpoint: Endpoint) -> Iterator[Device]:
    """Run the device inside the context."""
    device = Running(dut, endpoint)
    try:
        device.start()
        yield device
    finally:
        end_all(device.processes)
