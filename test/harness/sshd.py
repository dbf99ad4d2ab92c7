"""A real sshd on loopback with its own keys, which accepts a single key: ours."""

import contextlib
import shlex
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from dl3.control.remote import Machine

PROGRAM = "/usr/sbin/sshd"
SEPARATION = Path("/run/sshd")  # sshd does not start without it
START_SECONDS = 60.0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


class Sshd:
    """Use it in a with statement."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="dl3-sshd-")
        self.folder, port = Path(self._folder.name), _free_port()
        self.machine = Machine("127.0.0.1", "root", port)
        for name in ("host", "ours"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(command, check=True)
        SEPARATION.mkdir(exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress 127.0.0.1:{port}\nHostKey {self.folder}/host\nPidFile none\nUsePAM yes\n"
            f"AuthorizedKeysFile {self.folder}/ours.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nAllowStreamLocalForwarding yes\n",
            encoding="ascii",
        )
        command = [PROGRAM, "-D", "-e", "-f", str(config)]
        with (self.folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait(port)
        return self

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            log = (self.folder / "log").read_text()
            assert self._process.poll() is None, log
            assert time.monotonic() < deadline, log
            time.sleep(0.05)

    def command(self, key: str = "ours") -> str:
        """The command to use in place of 'ssh'; it reads none of the user's own files."""
        words = ["ssh", "-F", "none", "-i", f"{self.folder}/{key}", "-o", "IdentitiesOnly=yes"]
        known = ["-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={self.folder}/known"]
        return shlex.join([*words, *known])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()
