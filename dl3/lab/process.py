"""Any program beside us: started in a session of its own, frozen and thawed, ended in order or at once."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from dl3.model.fault import Fault

POLL_SECONDS = 0.02
LAST_LINES = 8


class Process:
    """A running program with its log; it also ends when we are killed. Ctrl-C does not reach it: we end it."""

    def __init__(self, name: str, command: Sequence[str], log: Path, added: Mapping[str, str] | None = None) -> None:
        self.name, self.log = name, log
        with log.open("wb") as output:
            try:
                self.process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", *command],
                    stdin=subprocess.PIPE,  # stays open: some programs leave at its end
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=os.environ | dict(added or {}),
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise Fault("'setpriv' is not installed; run tools/install-deps demo") from error

    def last_words(self) -> str:
        """The end of what it printed, in one line."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "; ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip()) or "it printed nothing"

    def check_alive(self) -> None:
        """Complain when it has left."""
        if self.process.poll() is not None:
            raise Fault(f"{self.name} left with status {self.process.returncode}: {self.last_words()}")

    def wait_until(self, is_ready: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Return once it `is_ready`; Fault with its own words when it leaves or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise Fault(f"waited {timeout_s:.0f} s in vain until {self.name} {what}: {self.last_words()}")
            time.sleep(POLL_SECONDS)

    def busy_seconds(self) -> float:
        """Processor time that all its threads have had, by the kernel's clock of 10 ms."""
        try:
            words = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise Fault(f"{self.name} is gone: {self.last_words()}") from error
        user, system = words.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def send_signal(self, number: signal.Signals) -> None:
        """To it and to all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def freeze(self) -> None:
        """All its threads stand still where they are."""
        self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = 10.0) -> int:
        """Ask it to end, wait, and return its status: negative when it had to be killed."""
        self.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return self.kill()
        finally:
            self._hang_up()

    def kill(self) -> int:
        """End it at once, frozen or not."""
        self.send_signal(signal.SIGKILL)
        self._hang_up()
        return self.process.wait()

    def _hang_up(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()


def end_all(processes: Sequence[Process]) -> None:
    """Each in order, the first one first, frozen or not; also when ending another one failed or was interrupted."""
    with ExitStack() as stack:
        for process in reversed(processes):
            stack.callback(process.stop)
            stack.callback(process.thaw)
