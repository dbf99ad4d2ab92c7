"""Access to the other machine of a testbed over the system's ssh: forwarded sockets, and Python scripts run there."""

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dl3.model.fault import Fault, UsageFault

HOST = r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[A-Za-z0-9][\w.-]*)"
ADDRESS = re.compile(rf"ssh://(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?{HOST}(?::(?P<port>\d{{1,5}}))?/?")
COMMAND = "DL3_SSH_COMMAND"  # environment variable: the command to run instead of 'ssh', with the user's own options
OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15")
OPEN_SECONDS = 20.0
POLL_S = 0.02
RUN_SECONDS = 60.0


@dataclass(frozen=True)
class Machine:
    """A machine that ssh can reach without asking for a password."""

    host: str
    user: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse 'ssh://[USER@]HOST[:PORT]'."""
        found = ADDRESS.fullmatch(text)
        port = int(found["port"] or 0) if found else 0
        if not found or port > 65535:
            raise UsageFault(f"{text}: the other machine must be given as ssh://admin@192.0.2.7 or ssh://dut:2222")
        return cls(found["host"].strip("[]"), found["user"] or "", port)

    def __str__(self) -> str:
        """'[USER@]HOST', as on an ssh command line."""
        return f"{self.user}@{self.host}" if self.user else self.host

    def ssh(self, *more: str) -> list[str]:
        """The ssh command line up to and including the host, with additional options."""
        port = ("-p", str(self.port)) if self.port else ()
        return [*shlex.split(os.environ.get(COMMAND, "ssh")), *OPTIONS, *port, *more, "--", str(self)]


def reason(stderr: str) -> str:
    """The error line of ssh."""
    lines = [
        line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("Warning: Permanently")
    ]
    return lines[-1] if lines else "ssh printed no error"


def no_way(machine: Machine, stderr: str) -> Fault:
    """Error for a machine that cannot be reached."""
    by_hand = f"ssh {f'-p {machine.port} ' if machine.port else ''}{machine}"
    return Fault(f"{machine} cannot be reached ({reason(stderr)}): make sure that '{by_hand}' works without a password")


def started(command: list[str], machine: Machine, errors: Path) -> subprocess.Popen[bytes]:
    """Start ssh with its stderr redirected to a file."""
    try:
        with errors.open("wb") as file:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file)
    except OSError as error:
        raise Fault(
            f"{command[0]} cannot be started to reach {machine}: {error.strerror}; install openssh-client"
        ) from error


@contextmanager
def near(machine: Machine, socket: Path) -> Iterator[Path]:
    """Forward a socket of the other machine; yields its local path, valid inside the context."""
    with tempfile.TemporaryDirectory(prefix="dl3-ssh-") as name:
        here, errors = Path(name) / socket.name, Path(name) / "stderr"
        command = machine.ssh("-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{here}:{socket}")
        ssh, deadline = started(command, machine, errors), time.monotonic() + OPEN_SECONDS
        try:
            while not here.exists():
                if ssh.poll() is not None or time.monotonic() > deadline:
                    raise no_way(machine, errors.read_text(errors="replace"))
                time.sleep(POLL_S)
            yield here
        finally:
            ssh.terminate()
            ssh.wait()


def run_python(machine: Machine, source: str, *arguments: str) -> str:
    """Run a script on the other machine and return its output. It may only use Python's standard library."""
    command = [*machine.ssh(), "python3", "-I", "-", *(shlex.quote(word) for word in arguments)]
    try:
        done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Fault(f"{machine} did not finish a script within {RUN_SECONDS:.0f} s: look at its load") from error
    except OSError as error:
        raise Fault(
            f"{command[0]} cannot be started to reach {machine}: {error.strerror}; install openssh-client"
        ) from error
    if done.returncode == 255:
        raise no_way(machine, done.stderr)
    if done.returncode:
        raise Fault(f"python3 on {machine} failed ({reason(done.stderr)}): is Python 3.9 or newer installed there?")
    return done.stdout
