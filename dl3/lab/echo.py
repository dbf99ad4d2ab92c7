"""Linux hosts in namespaces: one sends ICMP echo requests at a rate, the other replies. Counts are those of their interface."""

import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

INTERFACE = "eth0"
IDENTIFIER = 0x6C33
AROUND_BYTES = 14 + 20 + 8 + 4  # Ethernet, IPv4, ICMP, FCS
REQUEST = 8
ENOUGH_AHEAD_S = 0.001


def counter(name: str) -> int:
    """Of the interface."""
    return int(Path(f"/sys/class/net/{INTERFACE}/statistics/{name}").read_text(encoding="ascii"))


def request(sequence: int, n_bytes: int) -> bytes:
    """An echo request whose data are zeros."""
    whole = (REQUEST << 8) + IDENTIFIER + sequence
    folded = (whole & 0xFFFF) + (whole >> 16)
    checksum = ~((folded & 0xFFFF) + (folded >> 16)) & 0xFFFF
    return struct.pack("!BBHHH", REQUEST, 0, checksum, IDENTIFIER, sequence) + bytes(n_bytes)


class Linux:
    """The kernel replies."""

    def counts(self) -> dict[str, Any]:
        """Since the start."""
        found = {"came": counter("rx_packets"), "missed": counter("rx_dropped")}
        return found | {"dropped": counter("tx_dropped"), "sent": counter("tx_packets")}


class Ping:
    """Sends requests; the counts are of the latest run."""

    def __init__(self) -> None:
        self._refused = 0
        self._before = self._counted()
        self._thread: threading.Thread | None = None

    def _counted(self) -> dict[str, int]:
        sent = counter("tx_packets") + counter("tx_dropped")
        return {"sent": sent, "came": counter("rx_packets"), "missed": counter("rx_dropped")}

    def _run(self, to: str, pps: float, seconds: float, size: int) -> None:
        begin = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as line:
            for n in range(round(pps * seconds)):
                ahead_s = begin + n / pps - time.monotonic()
                if ahead_s > ENOUGH_AHEAD_S:
                    time.sleep(ahead_s)
                try:
                    line.sendto(request(n & 0xFFFF, max(0, size - AROUND_BYTES)), (to, 0))
                except OSError:
                    self._refused += 1

    def send(self, stream: dict[str, Any], pps: float, seconds: float, size: int) -> None:
        """Start."""
        self._before, self._refused = self._counted(), 0
        words = (stream["dst_ip"], pps, seconds, size)
        self._thread = threading.Thread(target=self._run, args=words, daemon=True)
        self._thread.start()

    def counts(self) -> dict[str, Any]:
        """Of the latest run."""
        is_done = self._thread is None or not self._thread.is_alive()
        now = self._counted()
        rises = {key: now[key] - self._before[key] for key in now}
        dropped = self._refused
        whole = rises | {"sent": rises["sent"] + dropped, "refused": dropped}
        return whole | {"is_done": is_done, "is_up": True, "late": 0, "p50_ns": 0.0}
