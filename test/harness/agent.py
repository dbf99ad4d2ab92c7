"""Commands in a guest, by its QEMU guest agent: no network and no console is needed, and the answer survives none."""

import base64
import contextlib
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE_S = 3600.0  # only ends what hangs
ASK_AGAIN_S = 10.0  # nothing is kept for an agent that does not run yet
LOOK_S = 0.2
SENTINEL = b"\xff"


class Done(NamedTuple):
    """What a command left."""

    status: int
    out: str
    error: str


class Silent(Exception):
    """The agent does not answer."""


class Agent:
    """The agent behind a socket of QEMU's. A guest that boots again has another one at the same socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = int(time.monotonic() * 1000)
        self._line: socket.socket | None = None

    def _read_until(self, end: bytes) -> bytes:
        found = b""
        while not found.endswith(end):
            assert self._line
            try:
                one = self._line.recv(1)
            except TimeoutError as error:
                raise Silent from error
            if not one:
                raise Silent
            found += one
        return found

    def _send(self, asked: dict[str, Any], before: bytes = b"") -> None:
        assert self._line
        self._line.sendall(before + json.dumps(asked).encode() + b"\n")

    def close(self) -> None:
        """Forget the connection."""
        if self._line:
            self._line.close()
            self._line = None

    def _sync(self) -> None:
        """Connect, and throw away what was said to others."""
        self.close()
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(ASK_AGAIN_S)
        self._line.connect(str(self.path))
        self._number += 1
        self._send({"execute": "guest-sync-delimited", "arguments": {"id": self._number}}, SENTINEL)
        while True:
            self._read_until(SENTINEL)
            try:
                if json.loads(self._read_until(b"\n")).get("return") == self._number:
                    return
            except ValueError:
                continue

    def _ask(self, name: str, **arguments: Any) -> Any:
        """The answer; Silent if the guest went away."""
        self._send({"execute": name, "arguments": arguments})
        said = json.loads(self._read_until(b"\n"))
        if "return" not in said:
            raise Silent(said)  # another boot's agent, which does not know the command
        return said["return"]

    def ready(self, is_alive: Callable[[], bool]) -> None:
        """Wait until it answers, as long as QEMU is there."""
        end = time.monotonic() + PATIENCE_S
        while True:
            assert is_alive(), "QEMU has ended"
            assert time.monotonic() < end, "the guest's agent does not answer"
            with contextlib.suppress(Silent, OSError):
                return self._sync()
            time.sleep(LOOK_S)

    def start(self, command: str) -> int:
        """Start a shell command; its number."""
        arguments = {"path": "/bin/bash", "arg": ["-c", command], "capture-output": True}
        return int(self._ask("guest-exec", **arguments)["pid"])

    def done(self, number: int) -> Done | None:
        """What a command that was started left; None if it still runs."""
        assert self._line
        self._line.settimeout(PATIENCE_S)  # a guest that works answers late
        said = self._ask("guest-exec-status", pid=number)
        if not said["exited"]:
            return None
        texts = [base64.b64decode(said.get(key, "")).decode(errors="replace") for key in ("out-data", "err-data")]
        return Done(int(said.get("exitcode", -1)), *texts)

    def run(self, command: str) -> Done:
        """Run a shell command to its end."""
        number = self.start(command)
        end = time.monotonic() + PATIENCE_S
        while (found := self.done(number)) is None:
            assert time.monotonic() < end, command
            time.sleep(LOOK_S)
        return found
