"""Unmodified FRR and BIRD, each in a network namespace and a folder of its own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from dl3.lab.command import run
from dl3.lab.namespace import Namespace
from dl3.model.fault import Fault

FRR = Path("/usr/lib/frr")
START_SECONDS = 60.0
STOP_SECONDS = 10.0
NETLINK_BUFFER = 90_000_000


class _Daemons:
    """Processes that share a folder. Closing ends them and removes the folder."""

    def __init__(self, namespace: Namespace, label: str) -> None:
        self.namespace = namespace
        self._folder = tempfile.TemporaryDirectory(prefix=f"{label}-", dir="/run")
        self.folder = Path(self._folder.name)
        self.folder.chmod(0o755)
        self._running: list[subprocess.Popen[bytes]] = []
        self._log = (self.folder / "log").open("ab")

    def _start(self, *command: str) -> None:
        self._running.append(
            subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.namespace.command(*command)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
            )
        )

    def _wait_for(self, file: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not file.exists():
            if any(one.poll() is not None for one in self._running) or time.monotonic() > deadline:
                words = (self.folder / "log").read_text(errors="replace").splitlines()[-5:]
                raise Fault(f"a routing daemon did not start: {'; '.join(words)}")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        for one in reversed(self._running):
            one.send_signal(signal.SIGTERM)
        for one in self._running:
            try:
                one.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        self._log.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()


class Frr(_Daemons):
    """zebra and the FRR daemons named in `files`, with their configurations and further `options`."""

    def __init__(
        self, namespace: Namespace, files: Mapping[str, str], options: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(namespace, "frr")
        shutil.chown(self.folder, "frr", "frr")
        self._files, self._options = files, options or {}
        self._names = ("zebra", *(name for name in files if name != "zebra"))
        for daemon in self._names:
            self._start_daemon(daemon)

    def restart(self) -> None:
        """Kill all daemons, which thus cannot tidy up, and start them again."""
        for one in self._running:
            one.kill()
        for one in self._running:
            one.wait(STOP_SECONDS)
        self._running.clear()
        for left in (*self.folder.glob("*.vty"), *self.folder.glob("*.pid"), self.folder / "zserv.api"):
            left.unlink(missing_ok=True)
        for daemon in self._names:
            self._start_daemon(daemon)

    def _start_daemon(self, daemon: str) -> None:
        text, file = self._files.get(daemon, ""), self.folder / f"{daemon}.conf"
        file.write_text(f"hostname {self.namespace.name}\n{text}\n")
        shutil.chown(file, "frr", "frr")
        more = {
            "zebra": ["-s", str(NETLINK_BUFFER)],
            "bfdd": ["--bfdctl", str(self.folder / "bfdd.sock")],
        }
        folder = str(self.folder)
        places = ["-f", str(file), "-i", f"{folder}/{daemon}.pid", "-z", f"{folder}/zserv.api", "--vty_socket", folder]
        words = [*places, *more.get(daemon, []), *self._options.get(daemon, [])]
        self._start(str(FRR / daemon), "-u", "frr", "-g", "frr", "-A", "127.0.0.1", *words)
        self._wait_for(self.folder / f"{daemon}.vty")
        if daemon == "zebra":
            self._wait_for(self.folder / "zserv.api")

    def show(self, words: str) -> dict[str, Any]:
        """JSON output of a show command."""
        text = run(["vtysh", "--vty_socket", str(self.folder), "-c", f"show {words} json"], 60.0)
        return cast(dict[str, Any], json.loads(text))

    def tell(self, *lines: str) -> None:
        """Apply configuration lines at run time."""
        words = [word for line in ("configure terminal", *lines) for word in ("-c", line)]
        run(["vtysh", "--vty_socket", str(self.folder), *words], 60.0)


class Bird(_Daemons):
    """A BIRD with a configuration, in which @FOLDER@ stands for its folder; `files` are written there first."""

    def __init__(self, namespace: Namespace, config: str, files: Mapping[str, str] | None = None) -> None:
        super().__init__(namespace, "bird")
        for name, text in (files or {}).items():
            (self.folder / name).write_text(text)
        file = self.folder / "bird.conf"
        file.write_text(config.replace("@FOLDER@", str(self.folder)))
        socket = self.folder / "bird.ctl"
        self._start(shutil.which("bird") or "/usr/sbin/bird", "-f", "-c", str(file), "-s", str(socket))
        self._wait_for(socket)

    def ask(self, *words: str) -> str:
        """Output of a birdc command."""
        environment = dict(os.environ) | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin"}
        command = ["birdc", "-s", str(self.folder / "bird.ctl"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
