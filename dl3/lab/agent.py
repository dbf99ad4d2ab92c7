"""Runs in a guest of a lab: starts the program there, and answers on the guest's second serial line. In a lab without
guests it runs on this machine, and answers at the socket in its argument.

A request and a reply are one line of JSON each. A reply has the request's `id`, and `error` if it failed.
"""

import json
import os
import socket
import subprocess
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from dl3.lab.echo import Linux, Ping
from dl3.lab.inside import Cards, Dl3d, Dl3gen, L2fwd, Pktgen, Testpmd
from dl3.model.fault import Fault

LINE = Path("/dev/ttyS1")
MOST = 1 << 16  # bytes of a request
ETHERNET = "0x020000"  # a class of PCI devices


class Inside(Protocol):
    """A program in a guest."""

    def counts(self) -> dict[str, Any]:
        """What it has counted so far."""


PROGRAMS: dict[str, Callable[..., Inside]] = {
    "dl3gen": Dl3gen,
    "pktgen": Pktgen,
    "dl3d": Dl3d,
    "l2fwd": L2fwd,
    "testpmd": Testpmd,
}
HOSTS: dict[str, Callable[..., Inside]] = {"ping": Ping, "Linux": Linux}  # in a namespace, by the kernel


def cards() -> list[str]:
    """PCI addresses of the network cards in order."""
    files = sorted(Path("/sys/bus/pci/devices").glob("*/class"))
    return [file.parent.name for file in files if file.read_text(encoding="ascii").strip() == ETHERNET]


def shell(*command: str) -> None:
    """Run a command of the guest; Fault with its last words."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"'{' '.join(command)}' failed in the guest: {(done.stderr or done.stdout).strip()[-300:]}")


def give_to_dpdk(found: list[str], pages: int) -> None:
    """Huge pages, and DPDK's driver for the cards."""
    Path("/proc/sys/vm/nr_hugepages").write_text(f"{pages}\n", encoding="ascii")
    Path("/dev/hugepages").mkdir(exist_ok=True)
    shell("mount", "-t", "hugetlbfs", "none", "/dev/hugepages")
    shell("modprobe", "uio_pci_generic")
    for card in found:
        device = Path("/sys/bus/pci/devices") / card
        (device / "driver_override").write_text("uio_pci_generic", encoding="ascii")
        if (device / "driver").exists():
            (device / "driver" / "unbind").write_text(card, encoding="ascii")
        Path("/sys/bus/pci/drivers_probe").write_text(card, encoding="ascii")


def started(asked: dict[str, Any]) -> Inside:
    """Start what is asked for."""
    if asked["program"] in HOSTS:
        return HOSTS[asked["program"]](**asked["options"])
    if asked["devices"]:
        here = Cards(asked["devices"], (asked["cores"][0], asked["cores"][1]), is_guest=False)
        return PROGRAMS[asked["program"]](here, **asked["options"])
    found = cards()
    if asked["program"] == "pktgen":
        for module in ("virtio_net", "pktgen"):
            shell("modprobe", module)
    else:
        give_to_dpdk(found, asked["pages"])
    return PROGRAMS[asked["program"]](Cards(found), **asked["options"])


class Agent:
    """Answers requests."""

    def __init__(self) -> None:
        self._running: Inside | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request."""
        if asked["do"] == "start":
            self._running = self._running or started(asked)
            return {}
        if self._running is None:
            raise Fault("nothing runs in the guest")
        if asked["do"] == "counts":
            return self._running.counts()
        if isinstance(self._running, Dl3gen | Pktgen | Ping) and asked["do"] == "send":
            self._running.send(**asked["options"])
            return {}
        raise Fault(f"the guest cannot do '{asked['do']}'")

    def line(self, line: bytes) -> bytes:
        """The line that answers one, for any error of a program, too."""
        try:
            asked = json.loads(line)
            reply = {"id": asked["id"]}
        except (ValueError, KeyError, TypeError):
            return b""  # the rest of a request whose sender was killed
        try:
            reply |= self.answer(asked)
        except (Fault, OSError, KeyError, TypeError, ValueError, subprocess.SubprocessError) as error:
            reply["error"] = f"{error}" or type(error).__name__
        return json.dumps(reply).encode() + b"\n"


def serve(agent: Agent, line: int) -> None:
    """Answer all requests of a line until its end."""
    text = b""
    while more := os.read(line, MOST):
        text = (text + more)[-MOST:]
        while b"\n" in text:
            first, _, text = text.partition(b"\n")
            reply = agent.line(first)
            while reply:
                reply = reply[os.write(line, reply) :]


def serve_all(agent: Agent, path: str) -> None:
    """Answer at a socket, one connection after the other."""
    with socket.socket(socket.AF_UNIX) as listener:
        draft = f"{path}.draft"  # a socket that exists can be connected to
        listener.bind(draft)
        listener.listen()
        Path(draft).rename(path)
        while True:
            peer, _ = listener.accept()
            with peer, suppress(OSError):  # the command was killed
                serve(agent, peer.fileno())


def main() -> None:
    """Answer until the guest ends, or for ever."""
    agent = Agent()
    if len(sys.argv) > 1:
        serve_all(agent, sys.argv[1])
    line = os.open(LINE, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(line, termios.TCSANOW)
    print("agent: ready", flush=True)
    serve(agent, line)


if __name__ == "__main__":
    main()
    sys.exit(1)  # the line has ended
