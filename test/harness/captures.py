"""'dl3 capture' as a process, and its file as tshark reads it."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dl3.control.client import Client
from dl3.control.replies import Reply
from harness.wire import wait_until


@dataclass(frozen=True)
class Captured:
    """A packet in a capture file, by tshark."""

    interface: str
    comment: str
    direction: str  # "in" or "out"
    frame: bytes
    length: int  # of the whole frame


def _text(frame: dict[str, Any], key: str) -> str:
    """The value of a field, wherever tshark's version puts it; "" if there is none."""
    for name, value in frame.items():
        if name == key:
            return str(value[0] if isinstance(value, list) else value)
        found = _text(value, key) if isinstance(value, dict) else ""
        if found:
            return found
    return ""


def read_by_tshark(path: Path) -> list[Captured]:
    """All packets of a file; no word of tshark about a mistake in it."""
    words = ["tshark", "-n", "-r", str(path), "-T", "json", "-x", "-J", "frame pkt_comment"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    told = [line for line in done.stderr.splitlines() if "as user" not in line]
    assert (done.returncode, told) == (0, []), done.stderr
    packets = []
    for packet in json.loads(done.stdout or "[]"):
        layers = packet["_source"]["layers"]
        direction = {"0x00000001": "in", "0x00000002": "out"}[_text(layers, "frame.packet_flags")]
        packets.append(
            Captured(
                _text(layers, "frame.interface_name"),
                _text(layers, "frame.comment"),
                direction,
                bytes.fromhex(layers["frame_raw"][0]),
                int(_text(layers, "frame.len")),
            )
        )
    return packets


# Checksums are verified; the order of TCP's segments is none of ours.
STRICT = [f"{name}.check_checksum:TRUE" for name in ("ip", "udp", "tcp")] + ["tcp.analyze_sequence_numbers:FALSE"]
SERIOUS = "_ws.malformed || _ws.expert.severity >= 0x600000"  # a warning or an error


def read_strictly(path: Path) -> Counter[str]:
    """How many packets of a file have each stack of protocols, by tshark, which finds no fault with any."""
    base = ["tshark", "-n", "-r", str(path), *(word for option in STRICT for word in ("-o", option))]
    told = subprocess.run([*base, "-V", "-Y", SERIOUS], capture_output=True, text=True, timeout=120, check=True).stdout
    assert not told, told[:5000]
    fields = [*base, "-T", "fields", "-e", "frame.protocols"]
    return Counter(subprocess.run(fields, capture_output=True, text=True, timeout=120, check=True).stdout.split())


def dl3(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command of dl3 to its end."""
    command = [sys.executable, "-m", "dl3", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def started(*words: str) -> subprocess.Popen[str]:
    """A command of dl3 that runs."""
    command = [sys.executable, "-m", "dl3", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def status_of(socket: Path) -> dict[str, Any]:
    """dl3d's reply to 'status'."""
    return Client(socket, 60.0).ask(Reply, "status").model_dump()


def is_capturing(socket: Path) -> bool:
    """Whether dl3d has a capture."""
    return bool(status_of(socket)["capturing"])


def wait_for_none(socket: Path) -> None:
    """Until dl3d has ended the capture of a command that has ended."""
    wait_until(lambda: not is_capturing(socket), "dl3d had ended the capture")


class RunningCapture:
    """'dl3 capture -w FILE', from when all workers capture until it has ended."""

    def __init__(self, socket: Path, file: Path, *words: str) -> None:
        self.socket, self.file = socket, file
        self.process = started("capture", "--socket", str(socket), "-w", str(file), "--json", *words)

    def __enter__(self) -> Self:
        wait_until(lambda: self._is_capturing() or self.process.poll() is not None, "the capture ran")
        assert self.process.poll() is None, self.process.communicate()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        wait_for_none(self.socket)

    def _is_capturing(self) -> bool:
        return self.file.exists() and self.file.stat().st_size > 0

    def wait(self) -> dict[str, int]:
        """Its summary, when it ends by itself."""
        printed, told = self.process.communicate(timeout=120)
        assert (self.process.returncode, told) == (0, ""), told
        wait_for_none(self.socket)
        summary: dict[str, int] = json.loads(printed)
        return summary

    def end(self) -> dict[str, int]:
        """Ctrl-C; its summary."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def packets(self) -> Sequence[Captured]:
        """The packets of the file."""
        return read_by_tshark(self.file)
