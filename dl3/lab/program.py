"""A running dl3d or dl3gen: started with a configuration, ready when it replies, stopped gracefully."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, cast

from dl3.control.client import exchange, result_of
from dl3.lab.command import run
from dl3.lab.namespace import Namespace
from dl3.model.fault import Fault

REPLY_TIMEOUT_S = 60.0  # on a busy machine its control thread waits for a core
MOST_WEIGHT = "-20"  # highest priority for nice


@dataclass(frozen=True)
class Surroundings:
    """The environment in which a program is started."""

    namespace: Namespace | None = None
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    goes_first: bool = False  # has priority over others on the same core
    shares_mounts: bool = False  # namespaces that it creates are visible to all

    def command(self, *words: str) -> list[str]:
        """The command line that runs `words` in this environment."""
        if self.namespace is None:
            return list(words)
        return self.namespace.enter(*words) if self.shares_mounts else self.namespace.command(*words)


def put_first(pid: int) -> None:
    """Give a session leader and all its threads the highest priority; Linux schedules sessions, then threads."""
    with contextlib.suppress(OSError):  # a kernel or container without autogroups
        Path(f"/proc/{pid}/autogroup").write_text(MOST_WEIGHT)
    run(["renice", "--priority", MOST_WEIGHT, "--pid", str(pid)])


class Program:
    """dl3d or dl3gen with a configuration text, in its own folder, which is removed when the object is closed."""

    NAME: ClassVar[str]

    def __init__(self, program: Path, config: str, around: Surroundings | None = None) -> None:
        self._around = around or Surroundings()
        self._program = program
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self.NAME}-")
        self.folder = Path(self._folder.name)
        self.socket = self.folder / self.socket_name()
        self.file = self.folder / f"{self.NAME}.yaml"
        self.file.write_text(config.replace("@SOCKET@", str(self.socket)).replace("@FOLDER@", str(self.folder)))
        self._log = (self.folder / "stderr").open("w")
        self.process = self._start()

    def socket_name(self) -> str:
        """File name of the control socket in the folder."""
        return f"{self.NAME}.sock"

    def _start(self) -> subprocess.Popen[bytes]:
        around = self._around
        process = subprocess.Popen(
            around.command(str(self._program), *around.options, str(self.file)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=dict(os.environ) | dict(around.environment),
            start_new_session=around.goes_first,
        )
        if around.goes_first:
            put_first(process.pid)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def stderr(self) -> str:
        """Its error output so far."""
        return (self.folder / "stderr").read_text()

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Return once it is ready; Fault with its error output if it exits or takes too long.

        dl3d is ready when its tables are complete, dl3gen when it replies on its socket.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Fault(f"{self.NAME} ended with status {self.process.returncode}: {self.stderr.strip()}")
            try:
                if self.call("status").get("ready", True):
                    return
            except (OSError, Fault, ValueError):
                pass
            time.sleep(0.02)
        raise Fault(f"{self.NAME} was not ready within {timeout_s:.0f} s: {self.stderr.strip()}")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method over the control socket and return the result unparsed; Fault if it fails."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = exchange(self.socket, json.dumps(question).encode() + b"\n", REPLY_TIMEOUT_S)
        return cast(dict[str, Any], result_of(method, reply))

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 60.0) -> int:
        """Ask it to exit, wait, and return its status; it is killed after the timeout, and the status is negative."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """Restart it after it has exited, with the same configuration and socket."""
        self.process = self._start()

    def close(self) -> None:
        """Stop it if it still runs, and remove its folder."""
        self.stop()
        self._log.close()
        self._folder.cleanup()
