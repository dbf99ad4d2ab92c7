"""Devices under test that are one program, which a command starts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dl3.control.client import Client
from dl3.control.replies import Reply
from dl3.host.cores import listed, usable
from dl3.lab.endpoint import Device, Endpoint
from dl3.lab.process import Process, end_all
from dl3.model.fault import Fault

START_SECONDS = 60.0


class Dut(Protocol):
    """How it is called, and how it is started."""

    @property
    def name(self) -> str:
        """As it stands in records."""

    @property
    def ready_words(self) -> str:
        """What it prints once its ports have started; '' for one that answers questions from then on."""

    def command(self, endpoint: Endpoint) -> Sequence[str]:
        """Write what it needs into the links' folder; the command that starts it."""

    def socket(self, endpoint: Endpoint) -> Path | None:
        """Where it answers questions, when it does."""


def built(path: Path) -> Path:
    """The path, when it is there."""
    if not path.exists():
        raise Fault(f"{path} is not built: run 'make' first")
    return path


def answers(client: Client) -> bool:
    """Whether somebody does."""
    try:
        client.ask(Reply, "status")
    except Fault:
        return False
    return True


def start_process(name: str, command: Sequence[str], folder: Path) -> Process:
    """With its log and EAL's own files in the private folder; on any core, whatever we ourselves keep to."""
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
        """As it stands in records."""
        return self.dut.name

    @property
    def client(self) -> Client | None:
        """Where it answers questions, when it does."""
        socket = self.dut.socket(self.endpoint)
        return Client(socket) if socket else None

    def start(self) -> None:
        """Return once dl3gen may come."""
        command = self.endpoint.links.enter("server", *self.dut.command(self.endpoint))
        self.processes[:] = [start_process(self.name, command, self.endpoint.links.folder)]
        self.processes[0].wait_until(self._is_listening, "was ready", START_SECONDS)

    def restart(self) -> None:
        """As after a crash."""
        self.processes[0].kill()
        self.start()

    def reset_port(self) -> None:
        """The link's end of it."""
        self.endpoint.links.reset_port()

    def _is_listening(self) -> bool:
        client = self.client
        words = self.processes[0].log.read_text(encoding="utf-8", errors="replace")
        has_started = answers(client) if client else self.dut.ready_words in words
        return has_started and self.endpoint.links.is_listening()


@contextmanager
def started(dut: Dut, endpoint: Endpoint) -> Iterator[Device]:
    """Run it until the context ends."""
    device = Running(dut, endpoint)
    try:
        device.start()
        yield device
    finally:
        end_all(device.processes)
