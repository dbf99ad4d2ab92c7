"""A running dl3d or dl3gen: started on a file, watched until it answers, stopped in order."""

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

REPLY_TIMEOUT_S = 30.0
MOST_WEIGHT = "-20"  # as nice counts it


@dataclass(frozen=True)
class Surroundings:
    """What a program is started with besides its file."""

    namespace: Namespace | None = None
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    goes_first: bool = False  # before others that want the same core
    shares_mounts: bool = False  # namespaces that it makes are seen by all

    def command(self, *words: str) -> list[str]:
        """The command line that runs `words` here."""
        if self.namespace is None:
            return list(words)
        return self.namespace.enter(*words) if self.shares_mounts else self.namespace.command(*words)


def put_first(pid: int) -> None:
    """Give the leader of a session, with all its threads, the most weight; Linux weighs sessions, then threads."""
    with contextlib.suppress(OSError):  # a kernel, or a container, without groups of sessions
        Path(f"/proc/{pid}/autogroup").write_text(MOST_WEIGHT)
    run(["renice", "--priority", MOST_WEIGHT, "--pid", str(pid)])


class Program:
    """A program of ours on a configuration text, in a folder of its own; the folder goes when the object is closed."""

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
        """The control socket's name in the folder."""
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
        """What it has said so far."""
        return (self.folder / "stderr").read_text()

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Return once it answers on its socket; Fault with its own words when it ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Fault(f"{self.NAME} ended with status {self.process.returncode}: {self.stderr.strip()}")
            try:
                self.call("status")
                return
            except (OSError, Fault, ValueError):
                time.sleep(0.02)
        raise Fault(f"{self.NAME} did not answer within {timeout_s:.0f} s: {self.stderr.strip()}")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One method over the control socket, the result as it comes; Fault with its error when it is refused."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = exchange(self.socket, json.dumps(question).encode() + b"\n", REPLY_TIMEOUT_S)
        return cast(dict[str, Any], result_of(method, reply))

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 10.0) -> int:
        """Ask it to end, wait, and return its status; it is killed (and the status negative) when it does not."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """After it ended: on the same file, with the same socket."""
        self.process = self._start()

    def close(self) -> None:
        """Stop it if it still runs and remove its folder."""
        self.stop()
        self._log.close()
        self._folder.cleanup()
