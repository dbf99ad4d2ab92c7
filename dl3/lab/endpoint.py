"""Interfaces between the lab and a device under test: what a device receives and what it provides."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from dl3.control.client import Client
from dl3.lab.process import Process

Role = Literal["server", "client"]  # the device is the server of both links, dl3gen the client


class Wire(Protocol):
    """Two links between dl3gen and a device, with a folder for the files of both sides."""

    @property
    def name(self) -> str:
        """'memif' or 'veth'."""

    @property
    def folder(self) -> Path:
        """Private; removed with the links."""

    def devices(self, role: Role) -> tuple[str, str]:
        """The two ends of one program, in the form of EAL's --vdev."""

    def enter(self, role: Role, *command: str) -> list[str]:
        """The command line that runs `command` in the network environment of that role."""

    def is_listening(self) -> bool:
        """Whether dl3gen can be started."""

    def buffers(self) -> dict[str, int]:
        """Additional configuration keys of dl3gen's ports."""

    def reset_port(self) -> None:
        """Set the device's first end down and up; Fault if not possible."""


@dataclass(frozen=True)
class Endpoint:
    """Links, cores, and the EAL and queue parameters; each kind of device interprets them."""

    links: Wire
    cores: tuple[int, ...]
    burst: int
    memory_mib: int
    page_kib: int = 2048  # 4: no huge pages
    channels: int = 0  # memory channels; 0: unspecified
    descriptors: int = 2048  # per queue

    @property
    def core(self) -> int:
        """The first core."""
        return self.cores[0]


class Device(Protocol):
    """A running device under test."""

    @property
    def name(self) -> str:
        """Name used in records."""

    @property
    def processes(self) -> Sequence[Process]:
        """All its programs; the forwarding one comes first."""

    @property
    def client(self) -> Client | None:
        """Client of its control socket, if it is dl3d."""

    def restart(self) -> None:
        """Kill the forwarding program and restart it; Fault if not possible."""

    def reset_port(self) -> None:
        """Set its first port down and up; Fault if not possible."""


Start = Callable[[Endpoint], AbstractContextManager[Device]]  # returns once dl3gen can be started
