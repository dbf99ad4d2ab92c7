"""A fake dl3d or dl3gen for tests: a UNIX socket that answers each method with a reply of its own."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from dl3.metrics.words import names, rows


def counters(scope: str) -> dict[str, int]:
    """A different number for each counter of a scope."""
    listed = [row["name"] for row in rows("counters", "counter") if row["scope"] == scope and "values" not in row]
    return {name: 1000 + i for i, name in enumerate(listed)}


def port(name: str) -> dict[str, Any]:
    """A port whose device counts nothing but missed frames."""
    losses = {"rx_missed": 4, "rx_no_mbuf": None, "rx_errors": None, "tx_errors": None}
    state = {"link_up": True, "device_present": True, "speed_mbps": None, "device_losses": 0, "device_resets": 2}
    return {"name": name, **state, **losses, **counters("port")}


def worker(number: int) -> dict[str, Any]:
    """A worker with one long gap of each length."""
    lists = {"ring_full": list(range(len(names("class")))), "long_gaps": [1] * 16}
    return {
        "worker": number,
        "core": number + 1,
        "idle": "poll",
        "queues": [{"port": "left", "queue": number, "rx_packets": 70 + number}],
        "counters": counters("worker") | {"slept_cycles": 5_000_000, "long_gap_cycles": 3_000_000},
        "counter_lists": lists,
    }


def of_dl3d() -> dict[str, dict[str, Any]]:
    """The replies of a dl3d with Linux as control plane and a flow table."""
    account = {"received": 100, "injected": 3, "copied": 2, "sent": 90, "punted": 5, "dropped": 10, "in_flight": 0}
    verdicts = [
        {"name": row["name"], "packets": 10 + i, "handed": i} for i, row in enumerate(rows("verdicts", "verdict"))
    ]
    table = {"worker_bytes4": 1, "worker_bytes6": 2, "worker_bytes_nexthops": 3, "control_bytes": 4, "flow_bytes": 5}
    table |= {"worker_bytes_vxlan": 6, "worker_bytes_macs": 7}
    status = {
        "version": "0.1.0",
        "dpdk": "DPDK 22.11.0",
        "started_ms": 1_700_000_000_125,
        "ready": True,
        "control": "linux",
        "mirror": "following",
        "reloads": 1,
        "routes": {"ip4": 7, "ip6": 8},
        "nexthops": 9,
        "neighbours": 2,
        "memory": {"mbufs": 100, "mbufs_free": 60},
        "table": table,
        "account": account,
    }
    classes = [{"name": name, **counters("class")} for name in names("class")]
    return {
        "status": status,
        "ports": {"ports": [port("left"), port("right")]},
        "workers": {"workers": [worker(0), worker(1)], "tsc_hz": 1_000_000},
        "drops": {**account, "verdicts": verdicts},
        "taps": {"classes": classes},
        "flows": {
            "ipv4": {"flows": 1, "max": 10},
            "ipv6": {"flows": 2, "max": 20},
            "added": 30,
            "deleted": 4,
            "idle": 5,
            "reached_end": 6,
        },
    }


def of_dl3gen() -> dict[str, dict[str, Any]]:
    """The replies of a dl3gen that sends."""
    latency = {"n": 10, "mean": 2500.0, "histogram": [[800.0, 900.0, 4], [1900.0, 2100.0, 5], [2e9, 3e9, 1]]}
    stream = {"name": "east", "sent": 12, "received": 10, "lost": 2, "refused": 1, "late": 3, "latency": latency}
    status = {"version": "0.1.0", "dpdk": "DPDK 22.11.0", "started_ms": 1_700_000_000_000, "run": 2, "state": "sending"}
    return {"status": status, "results": {"streams": [stream]}}


class Fake:
    """What it answers; change `replies`, or `raw` to answer with these bytes."""

    def __init__(self, replies: Mapping[str, Any]) -> None:
        self.replies: dict[str, Any] = deepcopy(dict(replies))
        self.raw: dict[str, bytes] = {}
        self.asked: list[str] = []

    def answer(self, line: bytes) -> bytes:
        """The line to send."""
        method = json.loads(line)["method"]
        self.asked.append(method)
        if method in self.raw:
            return self.raw[method]
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": self.replies[method]}).encode() + b"\n"


@contextmanager
def running(path: Path, fake: Fake) -> Iterator[Fake]:
    """The fake at a socket, which is removed afterwards."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer, peer.makefile("rb") as stream:
                    if line := stream.readline():
                        peer.sendall(fake.answer(line))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            path.unlink()
