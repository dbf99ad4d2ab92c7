"""Network namespaces and veth pairs that are removed with the lab that created them."""

import contextlib
import ctypes
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dl3.host.root import need_root
from dl3.lab.command import run

CLONE_NEWNET = 0x40000000
NAMESPACES = Path("/run/netns")
_numbers = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace")


@dataclass(frozen=True)
class Namespace:
    """A network namespace by name; a silent one never sends on its own."""

    name: str
    silent: bool = False

    def command(self, *command: str) -> list[str]:
        """The command line that runs `command` inside."""
        return ["ip", "netns", "exec", self.name, *command]

    def enter(self, *command: str) -> list[str]:
        """The same with shared mounts: namespaces created by `command` are visible outside."""
        return ["nsenter", f"--net={NAMESPACES / self.name}", "--", *command]

    def run(self, *command: str, timeout_s: float = 60.0) -> str:
        """Run a command inside, to completion."""
        return run(self.command(*command), timeout_s)

    def ip(self, *arguments: str) -> str:
        """Run ip(8) inside."""
        return run(["ip", "-n", self.name, *arguments])

    def set_sysctl(self, key: str, value: str) -> None:
        """Set a sysctl inside, such as "net.ipv4.ip_forward"."""
        self.run("sysctl", "-qw", f"{key}={value}")

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Move the calling thread into the namespace; sockets opened meanwhile remain in it."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(NAMESPACES / self.name, os.O_RDONLY)
        try:
            _set_namespace(there)
            yield
        finally:
            _set_namespace(home)
            os.close(there)
            os.close(home)


@dataclass(frozen=True)
class End:
    """One end of a veth link."""

    namespace: Namespace
    device: str
    mac: str


class Lab:
    """Creates namespaces and links with names unique on this machine; close() removes them all."""

    def __init__(self) -> None:
        self.tag = f"dl3-{os.getpid()}-{next(_numbers)}"
        self._namespaces: list[Namespace] = []

    def __enter__(self) -> "Lab":
        need_root("the lab")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def namespace(self, label: str, silent: bool = False) -> Namespace:
        """A new namespace; a silent one neither sends on its own nor forwards."""
        made = Namespace(f"{self.tag}-{label}", silent)
        self._namespaces.append(made)  # before it exists, in case of an interrupt
        run(["ip", "netns", "add", made.name])
        settings = ["net.ipv4.ip_forward=0"]
        for scope in ("all", "default"):
            settings.append(f"net.ipv6.conf.{scope}.disable_ipv6={int(silent)}")
            settings.append(f"net.ipv6.conf.{scope}.accept_dad=0")
        made.run("sysctl", "-qw", *settings)
        made.ip("link", "set", "lo", "up")
        return made

    def cable(self, one: End, other: End, mtu: int = 1500) -> None:
        """A veth pair, up at both ends, without offloads that would leave frames incomplete; no ARP at silent ends."""
        peer = ("peer", "name", other.device, "netns", other.namespace.name, "address", other.mac, "mtu", str(mtu))
        one.namespace.ip("link", "add", "name", one.device, "address", one.mac, "mtu", str(mtu), "type", "veth", *peer)
        for end in (one, other):
            end.namespace.ip("link", "set", "dev", end.device, "arp", "off" if end.namespace.silent else "on", "up")
            offloads = [word for name in ("tx", "rx", "tso", "gso", "gro") for word in (name, "off")]
            end.namespace.run("ethtool", "-K", end.device, *offloads)

    def close(self) -> None:
        """Remove everything; links are removed with their namespaces."""
        while self._namespaces:
            name = self._namespaces.pop().name
            if (NAMESPACES / name).exists():
                run(["ip", "netns", "delete", name])
