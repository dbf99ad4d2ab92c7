"""Two veth links between dl3gen and a device, each in its own namespace: neither side crashes when the other exits."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.lab.endpoint import Role
from dl3.lab.links import DUT_MACS, GENERATOR_MACS, NAMES
from dl3.lab.namespace import End, Lab, Namespace

MTU = 1500
FRAME_BYTES = 2048  # slot size of a packet socket's ring


@dataclass(frozen=True)
class Cables:
    """Two veth links; each end has the name of its port."""

    folder: Path
    server: Namespace
    client: Namespace
    descriptors: int
    name: str = "veth"

    def devices(self, _role: Role) -> tuple[str, str]:
        """Packet sockets on both ends."""
        first, second = (
            f"net_af_packet{i},iface={NAMES[i]},framesz={FRAME_BYTES},framecnt={self.descriptors}" for i in range(2)
        )
        return first, second

    def enter(self, role: Role, *command: str) -> list[str]:
        """Run inside that side's namespace."""
        return (self.server if role == "server" else self.client).command(*command)

    def is_listening(self) -> bool:
        """Always true: no end needs to listen."""
        return True

    def buffers(self) -> dict[str, int]:
        """No special requirements."""
        return {}

    def reset_port(self) -> None:
        """Set the device's end down and up; both ends lose carrier meanwhile."""
        for state in ("down", "up"):
            self.server.ip("link", "set", "dev", NAMES[0], state)


@contextmanager
def cables(descriptors: int, is_router: bool) -> Iterator[Cables]:
    """Create the links; if `is_router`, Linux itself forwards on the device's side."""
    with Lab() as lab, tempfile.TemporaryDirectory(prefix="dl3-veth-") as name:
        server = lab.namespace("dut", silent=not is_router)
        client = lab.namespace("gen", silent=True)
        for i in range(2):
            lab.cable(End(server, NAMES[i], DUT_MACS[i]), End(client, NAMES[i], GENERATOR_MACS[i]), MTU)
        yield Cables(Path(name), server, client, descriptors)
