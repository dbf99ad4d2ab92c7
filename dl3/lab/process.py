"""A child process: started in its own session, suspended and resumed, stopped gracefully or killed."""

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
    """A running program with its log. It is killed when we are killed. Ctrl-C does not reach it; we stop it."""

    def __init__(self, name: str, command: Sequence[str], log: Path, added: Mapping[str, str] | None = None) -> None:
        self.name, self.log = name, log
        with log.open("wb") as output:
            try:
                self.process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", *command],
                    stdin=subprocess.PIPE,  # stays open: some programs exit at end of file
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=os.environ | dict(added or {}),
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise Fault("'setpriv' is not installed; run tools/install-deps demo") from error

    def last_words(self) -> str:
        """The end of its output, on one line."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "; ".join(line.strip() for line in lines[-LAST_LINES:] if line.strip()) or "it printed nothing"

    def check_alive(self) -> None:
        """Fault if it has exited."""
        if self.process.poll() is not None:
            raise Fault(f"{self.name} exited with status {self.process.returncode}: {self.last_words()}")

    def wait_until(self, is_ready: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Return once `is_ready` is true; Fault with the program's output if it exits or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise Fault(f"timed out after {timeout_s:.0f} s waiting until {self.name} {what}: {self.last_words()}")
            time.sleep(POLL_SECONDS)

    def busy_seconds(self) -> float:
        """CPU time of all its threads, at the kernel's resolution of 10 ms."""
        try:
            words = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise Fault(f"{self.name} has exited: {self.last_words()}") from error
        user, system = words.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def send_signal(self, number: signal.Signals) -> None:
        """Send to the process and all its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def freeze(self) -> None:
        """Suspend all its threads."""
        self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume."""
        self.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = 10.0) -> int:
        """Ask it to exit, wait, and return its status; negative if it had to be killed."""
        self.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return self.kill()
        finally:
            self._hang_up()

    def kill(self) -> int:
        """Kill it, suspended or not."""
        self.send_signal(signal.SIGKILL)
        self._hang_up()
        return self.process.wait()

    def _hang_up(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()


def end_all(processes: Sequence[Process]) -> None:
    """Stop the processes in order, suspended or not, even if stopping one of them fails or is interrupted."""
    with ExitStack() as stack:
        for process in reversed(processes):
            stack.callback(process.stop)
            stack.callback(process.thaw)
