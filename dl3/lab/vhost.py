"""Two vhost-user links: the device makes the sockets, dl3gen comes with virtio_user; for devices that have no memif."""

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
    """A folder for the sockets, and how long the rings are."""

    folder: Path
    slots: int
    name: str = "vhost"

    def devices(self, role: Role) -> tuple[str, str]:
        """dl3gen's devices; of the device under test only the sockets' paths."""
        first, second = (str(self.folder / name) for name in NAMES)
        if role == "server":
            return first, second
        return self._device(0, first), self._device(1, second)

    def _device(self, number: int, path: str) -> str:
        return f"net_virtio_user{number},path={path},queues=1,queue_size={self.slots},mac={GENERATOR_MACS[number]}"

    def enter(self, _role: Role, *command: str) -> list[str]:
        """Sockets are reached from anywhere."""
        return list(command)

    def is_listening(self) -> bool:
        """The device waits at both sockets."""
        return all(Path(path).exists() for path in self.devices("server"))

    def buffers(self) -> dict[str, int]:
        """As many as the rings hold."""
        return {"rx_descriptors": self.slots, "tx_descriptors": self.slots}

    def reset_port(self) -> None:
        """There is no end of it in Linux."""
        raise Fault("a vhost-user link cannot be taken down from outside: let the device do it")


@contextmanager
def vhost(slots: int) -> Iterator[Vhost]:
    """The folder, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="dl3-vhost-") as folder:
        yield Vhost(Path(folder), slots)
