"""A testbed: a running, forwarding device under test with dl3gen on its wires."""

from collections.abc import Mapping
from typing import Protocol

from dl3.control.client import Client
from dl3.control.remote import Machine
from dl3.model.stream import Stream


class Bed(Protocol):
    """The interface that trials use while a testbed is open."""

    @property
    def generator(self) -> Client:
        """Client of dl3gen."""

    @property
    def dut(self) -> Client | None:
        """The dl3d whose accounting is checked; None for all other devices."""

    @property
    def at(self) -> Machine | None:
        """The machine of the device; None: this one."""

    @property
    def wire(self) -> str:
        """Kind of port between them: 'memif', 'veth', 'vhost', 'ports of the file'."""

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of the traffic definition, for these ports."""

    @property
    def facts(self) -> Mapping[str, object]:
        """'dut': name, kind, version and configuration; 'lab': cores, their distance, memory."""

    def freeze(self) -> None:
        """Suspend all programs, so that another testbed can use the cores."""

    def thaw(self) -> None:
        """Resume them."""

    def reset_process(self) -> None:
        """Kill the device's process and restart it; returns when it has started. Fault if not possible."""

    def reset_port(self) -> None:
        """Set the device's first port down and up. Fault if not possible."""
