"""A storm of route changes over the control socket, at a steady rate."""

import json
import socket
import time
from collections.abc import Sequence

from dl3.lab.forwarder import Forwarder

BATCH = 2000


def _request(changes: Sequence[tuple[str, str]]) -> bytes:
    rows = [{"op": op, "route": route} for op, route in changes]
    whole = {"jsonrpc": "2.0", "id": 1, "method": "routes.change", "params": {"changes": rows}}
    return json.dumps(whole, separators=(",", ":")).encode() + b"\n"


def _batches() -> list[bytes]:
    """A cycle of batches; after a complete cycle the table is unchanged.

    More specific prefixes next to the traffic's addresses (x.x.x.77) appear and disappear on port c, in the same /24s;
    the routes of the traffic itself change between two next hops of port b.
    """
    lower = [f"20.{i % 64}.{i // 64}.0/26" for i in range(BATCH)]
    upper = [f"20.{i % 64}.{i // 64}.128/25" for i in range(BATCH)]
    whole = [f"20.{i % 64}.{i // 64}.0/24" for i in range(BATCH)]
    hosts = [f"20.{i % 64}.{i // 64}.76/32" for i in range(BATCH)]
    rounds = [
        *([("add", f"{p} via 10.0.3.2 dev c") for p in group] for group in (lower, upper, hosts)),
        [("replace", f"{p} via 10.0.2.3 dev b") for p in whole],
        *([("delete", f"{p} via 10.0.3.2 dev c") for p in group] for group in (hosts, upper, lower)),
        [("replace", f"{p} via 10.0.2.2 dev b") for p in whole],
    ]
    return [_request(changes) for changes in rounds]


class Churn:
    """Sends batches of changes; each must be accepted."""

    def __init__(self, dl3d: Forwarder, changes_per_second: float) -> None:
        self._path = str(dl3d.socket)
        self._interval_s = BATCH / changes_per_second
        self._batches = _batches()

    def run(self, seconds: float) -> float:
        """Continue for this long, ending with a complete cycle; returns the changes per second."""
        n = 0
        with socket.socket(socket.AF_UNIX) as client, client.makefile("rb") as replies:
            client.settimeout(30.0)
            client.connect(self._path)
            start = time.monotonic()
            while time.monotonic() - start < seconds or n % len(self._batches):
                time.sleep(max(0.0, start + n * self._interval_s - time.monotonic()))
                client.sendall(self._batches[n % len(self._batches)])
                reply = json.loads(replies.readline())
                if "result" not in reply:
                    raise AssertionError(f"batch {n} was refused: {reply}")
                n += 1
            return n * BATCH / (time.monotonic() - start)
