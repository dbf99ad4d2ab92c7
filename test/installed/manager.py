"""The service manager and what it runs; with nothing but the standard library of Python."""

import json
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 600.0  # only ends what hangs
SOCKET = "/run/dl3d.sock"
FILE = Path("/etc/dl3/dl3d.yaml")


def run(command: str, status: int | None = 0) -> str:
    """What a shell command prints; it must end with this status, None: any."""
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert status in (None, done.returncode), f"'{command}' ended with {done.returncode}: {done.stdout}"
    return done.stdout


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.2)


def shown(name: str, unit: str = "dl3d") -> str:
    """A property of a unit."""
    return run(f"systemctl show --value -p {name} {unit}").strip()


def is_active(unit: str = "dl3d") -> bool:
    """Whether it runs and is ready."""
    return shown("ActiveState", unit) == "active"


def main_pid() -> int:
    """The process of dl3d; 0: none."""
    return int(shown("MainPID"))


def journal(unit: str = "dl3d") -> list[dict[str, str]]:
    """What the unit's processes wrote in this boot, oldest first."""
    lines = run(
        f"journalctl --sync; journalctl -b -q -u {unit} -o json --output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER"
    )
    return [json.loads(line) for line in lines.splitlines()]


def messages(unit: str = "dl3d") -> list[str]:
    """The text of that."""
    return [str(entry.get("MESSAGE")) for entry in journal(unit)]


def call(method: str, **params: object) -> dict[str, Any]:
    """A method of dl3d over its control socket; OSError if it does not serve."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(SOCKET)
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        connection.sendall(json.dumps(question).encode() + b"\n")
        with connection.makefile("rb") as replies:
            reply = json.loads(replies.readline())
    assert "result" in reply, reply
    return dict(reply["result"])


def is_closed() -> bool:
    """Whether dl3d's account of packets balances."""
    sums = call("drops")
    left = sum(int(sums.get(key, 0)) for key in ("received", "injected", "copied"))
    return left == sum(int(sums.get(key, 0)) for key in ("sent", "punted", "dropped"))
