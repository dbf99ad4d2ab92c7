"""Requests to the agent in a guest, over the guest's second serial line."""

import itertools
import json
import socket
import time
from pathlib import Path
from typing import Any

from dl3.model.fault import Fault

MOST = 1 << 16
_numbers = itertools.count(time.monotonic_ns())  # unlike those of a command that was killed before its reply came


def ask(path: Path, do: str, timeout_s: float, **keys: Any) -> dict[str, Any]:
    """The agent's reply; Fault if it has an error, or does not come."""
    number = next(_numbers)
    deadline = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(timeout_s)
        try:
            line.connect(str(path))
            # The first line ends what a killed command may have left.
            line.sendall(b"\n" + json.dumps({"id": number, "do": do, **keys}).encode() + b"\n")
            return reply_to(number, line, deadline)
        except TimeoutError as error:
            raise Fault(f"the guest at {path} did not answer '{do}' within {timeout_s:.0f} s") from error
        except OSError as error:
            raise Fault(f"the guest at {path} cannot be asked: {error.strerror}") from error


def reply_to(number: int, line: socket.socket, deadline: float) -> dict[str, Any]:
    """The reply with this number; others are late ones to commands that were killed."""
    text = b""
    while True:
        line.settimeout(max(0.01, deadline - time.monotonic()))
        more = line.recv(MOST)
        if not more:
            raise Fault("the guest has ended")
        text = (text + more)[-MOST:]
        while b"\n" in text:
            first, _, text = text.partition(b"\n")
            reply = parsed(first)
            if reply.get("id") != number:
                continue
            if "error" in reply:
                raise Fault(str(reply["error"]))
            return reply


def parsed(line: bytes) -> dict[str, Any]:
    """A reply; {} for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
