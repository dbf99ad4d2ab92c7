"""A separate dl3d between cables: one packet socket at the far end of each port."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace
from harness.wire import Wire, wait_until

TOP = Path(__file__).resolve().parent.parent.parent
BUILD = TOP / os.environ.get("DL3_BUILD", "build")
DL3D = BUILD / "src" / "dl3d"
# A frame of the kernel's ring must hold 9014 bytes plus header, and divide a block of whole pages.
JUMBO_OPTIONS = "framesz=9120,blocksz=2334720,framecnt=512"


@dataclass(frozen=True)
class Port:
    """A port of dl3d on a cable; unset fields are omitted from the file."""

    name: str
    mtu: int = 1500  # of the cable; in the file only if it differs from 1500
    device: str = "net_af_packet{index},iface={name},framecnt=4096"
    keys: dict[str, Any] = field(default_factory=dict)


FIT_THE_RING = 500  # frames, of the receive ring of a port


def port_mac(index: int) -> str:
    """MAC address of dl3d's end of cable number `index`."""
    return f"02:00:00:00:00:{index + 1:02x}"


def host_mac(index: int) -> str:
    """MAC address of the far end of cable number `index`."""
    return f"02:00:00:00:01:{index + 1:02x}"


def config_text(ports: Sequence[Port], **keys: Any) -> str:
    """A configuration for these ports with additional top-level `keys`. Huge pages are left to other tests."""
    entries = []
    for index, port in enumerate(ports):
        entry: dict[str, Any] = {"name": port.name, "device": port.device.format(index=index, name=port.name)}
        if port.mtu != 1500:
            entry["mtu"] = port.mtu
        entries.append(entry | port.keys)
    whole = {"ports": entries, "control": {"socket": "@SOCKET@"}, "memory": {"hugepages": "never"}} | keys
    text: str = yaml.safe_dump(whole, sort_keys=False)
    return text


class WiredForwarder:
    """A lab with one cable per port and dl3d between them. Close it, or use it in a with statement.

    `keys` are those of the file's top level; `linux` is passed to Forwarder, and so is `program`.
    """

    def __init__(self, ports: Sequence[Port], **keys: Any) -> None:
        self.ports = list(ports)
        self.lab = Lab()
        self.wires: dict[str, Wire] = {}
        self.forwarder: Forwarder | None = None
        try:
            self.namespace = self.lab.namespace("dl3d", silent=True)
            self._hosts = self.lab.namespace("hosts", silent=True)
            for index, port in enumerate(self.ports):
                self._lay(self.namespace, index, port)
            linux = keys.pop("linux", None)
            program = keys.pop("program", DL3D)
            self.dl3d = Forwarder(program, config_text(self.ports, **keys), self.namespace, linux=linux)
            self.forwarder = self.dl3d
            self.dl3d.wait_ready()
        except BaseException:
            self.close()
            raise

    def cut(self, name: str) -> None:
        """Delete the cable of a port, and with it the port's device."""
        self.wires.pop(name).close()
        self.namespace.ip("link", "delete", "dev", name)

    def lay_again(self, name: str) -> None:
        """Lay a new cable in place of the one that was cut: other interfaces of the same names."""
        index = [port.name for port in self.ports].index(name)
        self._lay(self.namespace, index, self.ports[index])

    def _lay(self, namespace: Namespace, index: int, port: Port) -> None:
        far = End(self._hosts, port.name, host_mac(index))
        self.lab.cable(End(namespace, port.name, port_mac(index)), far, mtu=port.mtu)
        self.wires[port.name] = Wire(far)

    def __enter__(self) -> "WiredForwarder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop dl3d, remove the cables."""
        if self.forwarder:
            self.forwarder.close()
        for wire in self.wires.values():
            wire.close()
        self.lab.close()

    def only_frame(self) -> tuple[str, bytes]:
        """Wait for a frame; the port on which it was sent, and the frame. There is no other one."""
        found: list[tuple[str, bytes]] = []

        def is_out() -> bool:
            found.extend((name, frame) for name, wire in self.wires.items() for frame in wire.drain())
            return bool(found)

        wait_until(is_out, "the packet came out")
        (only,) = found
        return only

    def account(self) -> "Account":
        """The packet accounting as reported by dl3d."""
        return Account.of(self.dl3d.call("drops"))

    def send_all(self, frames: Sequence[bytes], port: str = "a") -> None:
        """Send frames to a port, and wait until each is accounted for."""
        for start in range(0, len(frames), FIT_THE_RING):
            before = self.account()
            batch = frames[start : start + FIT_THE_RING]
            for frame in batch:
                self.wires[port].send(frame)
            self.settle(before.received + len(batch))

    def settle(self, received: int) -> "Account":
        """Wait until `received` packets have arrived and the accounting balances; return it."""
        return settled(self.dl3d, received)


@dataclass(frozen=True)
class Account:
    """Received + injected + copied = sent + punted + dropped + held, and each drop counter that is not zero."""

    received: int
    injected: int
    copied: int
    sent: int
    punted: int
    dropped: int
    drops: dict[str, int]
    held: int = 0

    @classmethod
    def of(cls, reply: dict[str, Any]) -> "Account":
        """Read the reply of the method drops."""
        sums = {key: int(reply.get(key, 0)) for key in ("received", "injected", "copied", "sent", "punted", "dropped")}
        verdicts = {row["name"]: int(row["packets"]) for row in reply["verdicts"] if row["packets"]}
        drops = {name: n for name, n in verdicts.items() if name != "forward"}
        return cls(**sums, drops=drops, held=int(reply.get("held", 0)))

    @property
    def is_closed(self) -> bool:
        """The accounting balances, and the drop counters add up."""
        left = self.received + self.injected + self.copied
        right = self.sent + self.punted + self.dropped + self.held
        return left == right and self.dropped == sum(self.drops.values())

    def since(self, before: "Account") -> "Account":
        """The difference to `before`."""
        drops = {name: n - before.drops.get(name, 0) for name, n in self.drops.items()}
        return Account(
            self.received - before.received,
            self.injected - before.injected,
            self.copied - before.copied,
            self.sent - before.sent,
            self.punted - before.punted,
            self.dropped - before.dropped,
            {name: n for name, n in drops.items() if n},
            self.held - before.held,
        )


def settled(dl3d: Forwarder, received: int) -> Account:
    """Wait until `received` packets have arrived and the accounting balances; return it."""
    found: list[Account] = []

    def is_settled() -> bool:
        found[:] = [Account.of(dl3d.call("drops"))]
        return found[0].received >= received and found[0].is_closed

    wait_until(is_settled, f"dl3d had received {received} packets, and the account was closed")
    return found[0]


def walked(text: str, n: int) -> Account:
    """Run dl3d with this configuration until `n` packets are accounted for."""
    with Forwarder(DL3D, text) as dl3d:
        dl3d.wait_ready()
        account = settled(dl3d, n)
        assert dl3d.stop() == 0, dl3d.stderr
    return account
