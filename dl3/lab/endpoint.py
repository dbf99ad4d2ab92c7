"""What a device under test of the lab is given, and what it is to those who keep it beside dl3gen."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from dl3.control.client import Client
from dl3.lab.process import Process

Role = Literal["server", "client"]  # the device is the server of both links, dl3gen the client


class Wire(Protocol):
    """Two links between dl3gen and a device, with a folder for what both sides need."""

    @property
    def name(self) -> str:
        """'memif' or 'veth'."""

    @property
    def folder(self) -> Path:
        """Private; gone with the links."""

    def devices(self, role: Role) -> tuple[str, str]:
        """Both ends of one program, as EAL's --vdev names them."""

    def enter(self, role: Role, *command: str) -> list[str]:
        """The command line that runs `command` where that role's ends are."""

    def is_listening(self) -> bool:
        """Whether dl3gen may come."""

    def buffers(self) -> dict[str, int]:
        """Keys that dl3gen's ports need beyond the usual ones."""

    def reset_port(self) -> None:
        """Take the device's first end down and up again; Fault where that cannot be."""


@dataclass(frozen=True)
class Endpoint:
    """Links, cores, and what EAL and queues are given; what they mean to a kind stands there."""

    links: Wire
    cores: tuple[int, ...]
    burst: int
    memory_mib: int
    page_kib: int = 2048  # 4: no huge pages
    channels: int = 0  # of memory; 0: not told
    descriptors: int = 2048  # of each queue

    @property
    def core(self) -> int:
        """The first one."""
        return self.cores[0]


class Device(Protocol):
    """A device under test that was started."""

    @property
    def name(self) -> str:
        """As it stands in records."""

    @property
    def processes(self) -> Sequence[Process]:
        """All of its programs; the one that forwards comes first."""

    @property
    def client(self) -> Client | None:
        """Where it answers questions, when it is dl3d."""

    def restart(self) -> None:
        """End what forwards at once and start it again, Fault where that cannot be."""

    def reset_port(self) -> None:
        """Take its first port down and up again; Fault where that cannot be."""


Start = Callable[[Endpoint], AbstractContextManager[Device]]  # returns once dl3gen may come; the device ends in order
