"""An emulated machine with two NUMA nodes, a card for management and others behind the second node's own PCI bus.

It boots a disk, and boots again when it is told to.
"""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.agent import PATIENCE_S, Agent, Done, Silent
from harness.wire import wait_until

MACS = ("02:00:00:00:00:02", "02:00:00:00:00:03")  # of the other cards


@dataclass(frozen=True)
class Topology:
    """Processors follow each other: node by node, core by core, thread by thread."""

    n_nodes: int = 2
    n_cores: int = 2
    n_threads: int = 2
    node_mib: int = 768
    far: int = 1  # the node of the card

    @property
    def n_cpus(self) -> int:
        """All of them."""
        return self.n_nodes * self.n_cores * self.n_threads

    def core(self, node: int, number: int) -> list[int]:
        """The threads of a core of a node."""
        first = (node * self.n_cores + number) * self.n_threads
        return list(range(first, first + self.n_threads))

    def arguments(self) -> list[str]:
        """Of QEMU."""
        each = self.n_cores * self.n_threads
        smp = f"{self.n_cpus},sockets={self.n_nodes},cores={self.n_cores},threads={self.n_threads}"
        found = ["-smp", smp, "-m", f"{self.n_nodes * self.node_mib}M"]
        for node in range(self.n_nodes):
            found += ["-object", f"memory-backend-ram,id=m{node},size={self.node_mib}M"]
            found += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={node * each}-{(node + 1) * each - 1}"]
        return found


def free_port() -> int:
    """One of this machine's, for ssh."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def cards(topology: Topology, port: int) -> list[str]:
    """The management card leads to the host's `port`; the others to nothing."""
    others = []
    for n, mac in enumerate(MACS):
        others += ["-device", f"pcie-root-port,id=below{n},bus=far,chassis={n + 1},slot={n + 1}"]
        others += [
            "-netdev",
            f"hubport,id=card{n},hubid={n}",
            "-device",
            f"e1000e,bus=below{n},netdev=card{n},mac={mac}",
        ]
    return [
        *("-device", "intel-iommu,intremap=on,caching-mode=on"),
        *("-netdev", f"user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,bus=pcie.0,netdev=management"),
        *("-device", f"pxb-pcie,id=far,bus_nr=128,numa_node={topology.far},bus=pcie.0"),
        *others,
    ]


class Emulated:
    """A machine that runs."""

    def __init__(self, disk: Path, topology: Topology) -> None:
        port = free_port()
        self.folder, self.topology, self.port = disk.parent, topology, port
        self.console = disk.with_suffix(".console")
        self.agent, self._qmp = Agent(disk.with_suffix(".agent")), disk.with_suffix(".qmp")
        command = [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel"),
            *topology.arguments(),
            *("-nodefaults", "-display", "none", "-serial", f"file:{self.console}"),
            *("-drive", f"file={disk},format=raw,if=none,id=disk"),
            *("-device", "virtio-blk-pci,bus=pcie.0,drive=disk"),
            *("-qmp", f"unix:{self._qmp},server=on,wait=off"),
            *("-chardev", f"socket,id=agent,path={self.agent.path},server=on,wait=off"),
            *(
                "-device",
                "virtio-serial-pci,bus=pcie.0",
                "-device",
                "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
            ),
            *cards(topology, port),
        ]
        self._qmp.unlink(missing_ok=True)
        self._log = disk.with_suffix(".log").open("w")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        wait_until(lambda: self._qmp.exists() or not self.runs(), "QEMU has started")
        self.boot = ""

    def runs(self) -> bool:
        """Whether QEMU has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """The end of its console."""
        return self.console.read_text(errors="replace")[-3000:]

    def up(self) -> None:
        """Wait until it has booted, once more than before, and all units are settled."""
        end = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < end, self.said()
            self.agent.ready(self.runs)
            with contextlib.suppress(Silent, OSError):
                boot = self.agent.run("cat /proc/sys/kernel/random/boot_id").out.strip()
                if boot != self.boot:
                    state = self.agent.run("systemctl is-system-running --wait").out.strip()
                    if state in ("running", "degraded"):  # and not going down again
                        self.boot = boot
                        return
            time.sleep(0.5)

    def run(self, command: str) -> Done:
        """Run a shell command there."""
        return self.agent.run(command)

    def must(self, command: str) -> str:
        """The same; what it printed, or an AssertionError if it failed."""
        done = self.run(command)
        assert done.status == 0, f"{command}: {done}"
        return done.out

    def reboot(self) -> None:
        """Boot again, and wait for it."""
        self.agent.start("systemctl reboot")
        self.up()

    def off(self) -> None:
        """Switch it off, all files written."""
        self.agent.start("systemctl poweroff")
        assert self._process.wait(PATIENCE_S) == 0, self.said()

    def close(self) -> None:
        """End it as it is."""
        self._process.kill()
        self._process.wait()
        self._log.close()
        self.agent.close()


@contextlib.contextmanager
def emulated(disk: Path) -> Iterator[Emulated]:
    """A machine that has booted this disk."""
    made = Emulated(disk, Topology())
    try:
        made.up()
        yield made
    finally:
        made.close()


def card_of(machine: Emulated, mac: str = MACS[0]) -> str:
    """The PCI address of a card."""
    found = machine.must(f"basename $(readlink $(dirname $(grep -l {mac} /sys/class/net/*/address))/device)")
    return found.strip()
