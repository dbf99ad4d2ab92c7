"""Packets from host to peer, through dl3d: `stream.py send` and `stream.py receive FILE`, in their namespaces."""

import contextlib
import socket
import sys
import time
from pathlib import Path

TARGET = ("198.18.0.1", 5000)
EVERY_S = 0.02
NUMBER_LENGTH = 8


def send() -> None:
    """Numbered packets, until the end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        for number in range(1 << 32):
            with contextlib.suppress(OSError):  # the neighbour does not answer
                end.sendto(number.to_bytes(NUMBER_LENGTH, "big"), TARGET)
            time.sleep(EVERY_S)


def receive(path: Path) -> None:
    """A line for each packet: its number, and when it came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end, path.open("w", buffering=1) as out:
        end.bind(TARGET)
        while True:
            number = int.from_bytes(end.recv(NUMBER_LENGTH), "big")
            out.write(f"{number} {time.monotonic()}\n")


def arrivals(path: Path) -> list[tuple[int, float]]:
    """Number and time of each packet so far."""
    lines = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []
    return [(int(number), float(at)) for number, at in map(str.split, lines)]


if __name__ == "__main__":
    send() if sys.argv[1] == "send" else receive(Path(sys.argv[2]))
