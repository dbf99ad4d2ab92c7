"""Two vhost-user links: the device creates the sockets, dl3gen connects with virtio_user; for devices without memif."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.lab.endpoint import Role
from dl3.lab.links import GENERATOR_MACS, NAMES
from dl3.model.fault import Fault


@dataclass(frozen=True)
class Vhost:
    """A folder for the sockets, and the ring size."""

    folder: Path
    slots: int
    name: str = "vhost"

    def devices(self, role: Role) -> tuple[str, str]:
        """dl3gen's devices; for the device under test only the paths of the sockets."""
        first, second = (str(self.folder / name) for name in NAMES)
        if role == "server":
            return first, second
        return self._device(0, first), self._device(1, second)

    def _device(self, number: int, path: str) -> str:
        return f"net_virtio_user{number},path={path},queues=1,queue_size={self.slots},mac={GENERATOR_MACS[number]}"

    def enter(self, _role: Role, *command: str) -> list[str]:
        """No change: the sockets can be reached from any namespace."""
        return list(command)

    def is_listening(self) -> bool:
        """Whether the device listens on both sockets."""
        return all(Path(path).exists() for path in self.devices("server"))

    def buffers(self) -> dict[str, int]:
        """As many descriptors as the rings have."""
        return {"rx_descriptors": self.slots, "tx_descriptors": self.slots}

    def reset_port(self) -> None:
        """Not possible: the link has no interface in Linux."""
        raise Fault("a vhost-user link cannot be taken down from outside: let the device do it")


@contextmanager
def vhost(slots: int) -> Iterator[Vhost]:
    """The links, inside the context."""
    with tempfile.TemporaryDirectory(prefix="dl3-vhost-") as folder:
        yield Vhost(Path(folder), slots)
