"""Two bridges of Linux with the same ports: dl3d forwards for one, the kernel alone for the other."""

import contextlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Namespace
from harness.wire import Wire, wait_until
from harness.wired import Account, Port, WiredForwarder

NAMES = ("a", "b", "c", "d")
BROADCAST = bytes([255] * 6)
MULTICAST = bytes.fromhex("01005e000001")
ETHERTYPE = bytes.fromhex("88b5")
MARK = b"group"  # followed by a number, in a packet
HOSTS = [bytes.fromhex(f"0200000005{number:02x}") for number in range(16)]
UNKNOWN, STRANGER, LINK_LOCAL = (bytes.fromhex(f"02000000{last}") for last in ("07ff", "0400", "0401"))
RESERVED = [bytes.fromhex(f"0180c20000{number:02x}") for number in range(1, 16)]


def frame(dst: bytes, src: bytes, number: int) -> bytes:
    """A frame that carries its number."""
    return dst + src + ETHERTYPE + struct.pack("!I", number) + bytes(42)


def numbers(wire: Wire) -> list[int]:
    """The numbers of our frames that have arrived; they may be tagged."""
    found = []
    for one in wire.drain():
        mark = ETHERTYPE if ETHERTYPE in one[12:18] else MARK
        if mark in one[12:]:
            at = one.index(mark, 12) + len(mark)
            found.append(int(struct.unpack("!I", one[at : at + 4])[0]))
    return found


def spelled(mac: bytes) -> str:
    """As commands of Linux write it."""
    return mac.hex(":")


def follow(dl3d: Forwarder, port: str, mtu: int) -> int:
    """Wait until workers have what Linux told before: it tells in order.

    `port` is in no bridge, and has had this MTU; return its new one.
    """
    mtu = 1400 + (mtu + 1) % 2
    dl3d.taps.ip("link", "set", "dev", port, "mtu", str(mtu))

    def is_told() -> bool:
        rows = dl3d.call("mirror")["interfaces"]
        return any(row["name"] == port and row["mtu"] == mtu for row in rows)

    wait_until(is_told, "the latest change was told")
    return mtu


def serves(dl3d: Forwarder, ports: Sequence[str]) -> bool:
    """Whether workers forward for all these ports of the only bridge."""
    bridges = dl3d.call("bridges")["bridges"]
    return bool(bridges) and {row["port"] for row in bridges[0]["ports"]} == set(ports)


@dataclass
class Both:
    """Two bridges with four ports each: dl3d forwards for one, the kernel alone for the other."""

    wired: WiredForwarder
    kernel: Namespace
    control: dict[str, Wire]
    number: int = 0
    changes: list[str] = field(default_factory=list)
    mtu: int = 1400  # of the port that is in no bridge
    behind: dict[bytes, str] = field(default_factory=dict)  # where a host sent its latest frame
    others: dict[str, tuple[Wire, Wire]] = field(default_factory=dict)  # further places at which frames come out

    @property
    def sides(self) -> tuple[Namespace, Namespace]:
        """Where the bridges are."""
        return self.wired.dl3d.taps, self.kernel

    def change(self, port: str, *words: str) -> None:
        """Set attributes of a port of both bridges, and wait until workers have followed."""
        self.changes.append(" ".join((port, *words)))
        for side in self.sides:
            side.run("bridge", "link", "set", "dev", port, *words)
        self.followed()

    def followed(self) -> None:
        """Wait until workers have what Linux told before: it tells in order."""
        self.mtu = follow(self.wired.dl3d, "e", self.mtu)

    def send(self, port: str, frames: list[bytes]) -> None:
        """Send frames on a port of both; the same ones must come out at the same ports, each once."""
        places = {name: (self.wired.wires[name], self.control[name]) for name in NAMES} | self.others
        for one in frames:
            for wire in places[port]:
                wire.send(one)
        ours: dict[str, list[int]] = {name: [] for name in places}
        theirs: dict[str, list[int]] = {name: [] for name in places}

        def is_same() -> bool:
            for name, (one, other) in places.items():
                ours[name] = sorted(ours[name] + numbers(one))
                theirs[name] = sorted(theirs[name] + numbers(other))
            return ours == theirs and Account.of(self.wired.dl3d.call("drops")).is_closed

        try:
            wait_until(is_same, "the same frames had come out of both", 20)
        except AssertionError as error:
            what = f"dl3d {ours}, the kernel {theirs}; sent on {port}: {[one.hex() for one in frames]}"
            raise AssertionError(f"{what}; changes: {self.changes}; hosts: {self.behind}") from error

    def knows(self, host: bytes) -> str | None:
        """The port behind which workers know a host."""
        rows = self.wired.dl3d.call("macs", limit=5000)["macs"]
        return next((str(row["port"]) for row in rows if row["mac"] == spelled(host)), None)

    def introduce(self, host: bytes, port: str) -> None:
        """Have both bridges learn where a host is, and wait until workers know, too."""
        self.number += 1
        self.send(port, [frame(BROADCAST, host, self.number)])
        self.behind[host] = port
        wait_until(lambda: self.knows(host) == port, f"workers knew {spelled(host)}")

    def greet(self, port: str) -> None:
        """Have the hosts behind a port send to all, so that both bridges know what they may know; workers, too."""
        here = [host for host, at in self.behind.items() if at == port]
        self.send(port, [frame(BROADCAST, host, self.number + 1 + i) for i, host in enumerate(here)])
        self.number += len(here)
        self.followed()

    def is_served(self) -> bool:
        """Whether workers forward for all ports."""
        return serves(self.wired.dl3d, NAMES)

    def unsupported(self) -> list[dict[str, Any]]:
        """What workers leave to Linux."""
        return list(self.wired.dl3d.call("unsupported")["unsupported"])


def make_bridge(side: Namespace, ports: Sequence[str] = NAMES) -> None:
    """A bridge of these ports; `arp off`, so that it sends nothing of its own."""
    side.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    words = ("type", "bridge", "mcast_snooping", "0", "stp_state", "0")
    side.ip("link", "add", "name", "br0", *words)
    side.ip("link", "set", "dev", "br0", "arp", "off", "up")
    for name in ports:
        side.ip("link", "set", "dev", name, "master", "br0")
        side.ip("link", "set", "dev", name, "arp", "off", "up")
    wait_until(lambda: side.ip("-d", "link", "show").count("state forwarding") == len(ports), "all ports forwarded")


@contextlib.contextmanager
def pair(keys: dict[str, dict[str, Any]] | None = None, **linux: Any) -> Iterator[Both]:
    """Both bridges with all ports, served by workers. `keys`: of ports; `linux`: settings of dl3d beside `keep`."""
    ports = [Port(name, keys=(keys or {}).get(name, {})) for name in (*NAMES, "e")]
    with WiredForwarder(ports, linux={"keep": True, **linux}) as wired:
        kernel = wired.lab.namespace("kernel", silent=True)
        far = wired.lab.namespace("control", silent=True)
        control = {}
        for index, name in enumerate(NAMES):
            end = End(far, name, f"02:00:00:00:03:{index:02x}")
            wired.lab.cable(End(kernel, name, f"02:00:00:00:02:{index:02x}"), end)
            control[name] = Wire(end)
        made = Both(wired, kernel, control)
        for side in made.sides:
            make_bridge(side)
        wait_until(made.is_served, "workers served all ports")
        yield made
        for wire in control.values():
            wire.close()
