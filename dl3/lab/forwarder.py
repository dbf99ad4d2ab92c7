"""A running dl3d: started on a file, watched until it answers, stopped in order."""

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from dl3.control.client import exchange, result_of
from dl3.lab.namespace import Namespace
from dl3.model.fault import Fault

REPLY_TIMEOUT_S = 30.0


class Forwarder:
    """dl3d on a configuration text, in a folder of its own; the folder goes when the object is closed."""

    def __init__(
        self, program: Path, config: str, namespace: Namespace | None = None, options: Sequence[str] = ()
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="dl3d-")
        self.folder = Path(self._folder.name)
        self.socket = self.folder / "dl3d.sock"
        self.file = self.folder / "dl3d.yaml"
        self.file.write_text(config.replace("@SOCKET@", str(self.socket)).replace("@FOLDER@", str(self.folder)))
        self._log = (self.folder / "stderr").open("w")
        command = [str(program), *options, str(self.file)]
        self.process = subprocess.Popen(
            namespace.command(*command) if namespace else command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )

    def __enter__(self) -> "Forwarder":
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
                raise Fault(f"dl3d ended with status {self.process.returncode}: {self.stderr.strip()}")
            try:
                self.call("status")
                return
            except (OSError, Fault, ValueError):
                time.sleep(0.02)
        raise Fault(f"dl3d did not answer within {timeout_s:.0f} s: {self.stderr.strip()}")

    def call(self, verb: str, **params: Any) -> dict[str, Any]:
        """One verb over the control socket, the result as it comes; Fault with its complaint when it is refused."""
        question = {"jsonrpc": "2.0", "id": 1, "method": verb, "params": params}
        reply = exchange(self.socket, json.dumps(question).encode() + b"\n", REPLY_TIMEOUT_S)
        return cast(dict[str, Any], result_of(verb, reply))

    def stop(self, how: signal.Signals = signal.SIGTERM, timeout_s: float = 10.0) -> int:
        """Ask it to end, wait, and return its status; it is killed (and the status negative) when it does not."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def close(self) -> None:
        """Stop it if it still runs and remove its folder."""
        self.stop()
        self._log.close()
        self._folder.cleanup()
