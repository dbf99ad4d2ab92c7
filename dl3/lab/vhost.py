"""Two vhost-user links: the device creates the sockets, dl3gen connects with virtio_user."""

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

    def socket(self, number: int) -> Path:
        """Socket of a link."""
        return self.folder / NAMES[number]

    def device(self, number: int, role: Role) -> str:
        """One end of a link, in the form of EAL's --vdev."""
        if role == "server":
            return f"net_vhost{number},iface={self.socket(number)},queues=1"
        where = f"path={self.socket(number)},queues=1,queue_size={self.slots}"
        return f"net_virtio_user{number},{where},mac={GENERATOR_MACS[number]}"

    def devices(self, role: Role) -> tuple[str, str]:
        """Both ends of one program."""
        return self.device(0, role), self.device(1, role)

    def enter(self, _role: Role, *command: str) -> list[str]:
        """No change: the sockets can be reached from any namespace."""
        return list(command)

    def is_listening(self) -> bool:
        """Whether the device listens on both sockets."""
        return all(self.socket(i).exists() for i in range(2))

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
