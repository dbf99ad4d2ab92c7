"""What a lab has on this machine: processes, network namespaces and a folder, all found by the lab's name.

Only one command at a time works with a lab. It holds an abstract socket, which Linux removes with it. A later command
settles what a killed one has left: processes are found by a variable of their environment, whatever became of their
parent. A lab that 'up' has started stays until 'down'; any other one ends with its command.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dl3.host.interrupts import Held
from dl3.lab.command import run
from dl3.lab.namespace import NAMESPACES, Namespace
from dl3.model.fault import Fault, UsageFault

VARIABLE = "DL3_LAB"
RUN = Path("/run")
PROC = Path("/proc")
GONE_S = 60.0
LAST_LINES = 4


@dataclass(frozen=True)
class Place:
    """The names of everything that belongs to a lab."""

    lab: str
    run: Path = RUN

    @property
    def name(self) -> str:
        """Of the namespace, of the folder, and of the lock."""
        return f"dl3-lab-{self.lab}"

    @property
    def folder(self) -> Path:
        """For sockets, logs and configurations."""
        return self.run / self.name

    @property
    def namespace(self) -> Namespace:
        """For TAP interfaces and bridges."""
        return Namespace(self.name, silent=True)

    def host(self, name: str) -> Namespace:
        """For a host of the lab."""
        return Namespace(f"{self.name}-{name}")

    def namespaces(self) -> list[str]:
        """Those that exist."""
        return [path.name for path in NAMESPACES.glob(f"{self.name}*")]

    @property
    def up_file(self) -> Path:
        """Exists while the lab is to stay; see dl3.labs.running."""
        return self.folder / "up.json"

    def processes(self) -> list[int]:
        """All processes of the lab, whoever is their parent now."""
        marker = f"{VARIABLE}={self.name}".encode()
        found = []
        for folder in PROC.glob("[0-9]*"):
            with suppress(OSError):
                if marker in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def has_any(self) -> bool:
        """Whether anything of the lab is on this machine."""
        return self.folder.exists() or bool(self.namespaces() or self.processes())

    def settle(self) -> None:
        """Remove everything; nothing is done if there is nothing."""
        deadline = time.monotonic() + GONE_S
        while found := self.processes():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            reap()
            if time.monotonic() > deadline:
                raise Fault(f"processes {', '.join(map(str, found))} of the lab {self.lab} do not end: end them")
            time.sleep(0.02)
        for name in self.namespaces():
            run(["ip", "netns", "delete", name])
        if self.folder.exists():
            shutil.rmtree(self.folder)


def reap() -> None:
    """Wait for those of our children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@contextmanager
def alone(place: Place) -> Iterator[None]:
    """Hold the lab's lock; UsageFault if another command has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind(f"\0{place.name}")
        except OSError as error:
            raise UsageFault(
                f"another command works with the lab {place.lab}: wait until it has ended, or end it with Ctrl-C"
            ) from error
        yield


@dataclass(frozen=True)
class Started:
    """A program of the lab, with the file of its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_words(self) -> str:
        """The end of its output, on one line."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "; ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip()) or "it printed nothing"

    def check_alive(self) -> None:
        """Fault if it has ended."""
        if self.process.poll() is not None:
            raise Fault(f"{self.name} ended with status {self.process.returncode}: {self.last_words()}")

    def wait_until(self, is_ready: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Return once `is_ready` is true; Fault if the program ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise Fault(f"{self.name} did not {what} within {timeout_s:.0f} s: {self.last_words()}")
            time.sleep(0.05)


def start(place: Place, name: str, command: Sequence[str], stays: bool) -> Started:
    """Start a program of the lab. It ends with us, whatever ends us, unless it `stays`."""
    log = place.folder / f"{name}.log"
    whole = [*command] if stays else ["setpriv", "--pdeathsig", "KILL", *command]
    with Held(), log.open("wb") as output:
        try:
            process = subprocess.Popen(
                whole,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {VARIABLE: place.name, "RUNTIME_DIRECTORY": str(place.folder)},
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise Fault(f"'{whole[0]}' is not installed; run tools/install-deps guest") from error
    return Started(name, process, log)
