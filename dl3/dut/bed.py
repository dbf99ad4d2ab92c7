"""A bed: a device under test that runs and forwards, with dl3gen on its wires."""

from collections.abc import Mapping
from typing import Protocol

from dl3.control.client import Client
from dl3.control.remote import Machine
from dl3.model.stream import Stream


class Bed(Protocol):
    """What trials need of it, for as long as it is open."""

    @property
    def generator(self) -> Client:
        """dl3gen."""

    @property
    def dut(self) -> Client | None:
        """The dl3d whose account is checked; None for all other devices."""

    @property
    def at(self) -> Machine | None:
        """The machine of the device; None: this one."""

    @property
    def wire(self) -> str:
        """Kind of port between them: 'memif', 'veth', 'vhost', 'ports of the file'."""

    @property
    def streams(self) -> tuple[Stream, ...]:
        """As the traffic wants them, for these ports."""

    @property
    def facts(self) -> Mapping[str, object]:
        """'dut': its name, kind, version and configuration; 'lab': cores, their distance, memory."""

    def freeze(self) -> None:
        """All programs stand still, so that another bed may have the cores."""

    def thaw(self) -> None:
        """They go on."""

    def reset_process(self) -> None:
        """End the device's process at once and start it again; returns when it was started. Fault where it cannot."""

    def reset_port(self) -> None:
        """Take the device's first port down and up again. Fault where it cannot."""
