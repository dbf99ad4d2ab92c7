"""What any device under test of the lab is given, and how it is asked to start."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dl3.lab.links import Links


@dataclass(frozen=True)
class Seat:
    """Links, its cores, frames at a time, EAL's memory."""

    links: Links
    cores: tuple[int, ...]
    burst: int
    memory_mib: int

    @property
    def core(self) -> int:
        """The first one."""
        return self.cores[0]


class Dut(Protocol):
    """A forwarder: how it is called, and how it is started."""

    @property
    def name(self) -> str:
        """As it stands in records."""

    def command(self, seat: Seat) -> Sequence[str]:
        """Write what it needs into the links' folder; the command that starts it."""

    def socket(self, seat: Seat) -> Path | None:
        """Where it answers questions, when it does."""
