"""A capture on the workers of dl3d, as a stream of pcapng blocks."""

import json
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dl3.control.client import DL3D, not_there, result_of
from dl3.model.fault import Fault

REPLY_SECONDS = 15.0
SILENCE_SECONDS = 15.0  # in the middle of a chunk, or once the end was asked for; dl3d waits 10 s for a reader
HEAD = struct.Struct("<IIQQ")  # struct capture_chunk
MAX_BYTES = 64 << 20  # of a chunk, or of the reply


def silent() -> Fault:
    """It hangs."""
    return Fault(
        f"dl3d has sent nothing of the capture for {SILENCE_SECONDS:g} s: the rest is given up; see whether 'dl3 show status' replies"
    )


@dataclass(frozen=True)
class Chunk:
    """Whole pcapng blocks, and how many frames were captured and missed up to their end."""

    blocks: bytes
    captured: int
    missed: int
    is_last: bool


class CaptureStream:
    """The connection of a capture that runs."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer, self._is_ending = peer, False

    def end(self) -> None:
        """Ask for the end: what was captured until then still comes."""
        self._is_ending = True
        try:
            self._peer.shutdown(socket.SHUT_WR)
        except OSError:
            return  # dl3d has ended it already

    def wait(self, at_most_s: float | None = None) -> bool:
        """Wait for the next chunk; False: it has not come within that time. May be interrupted, unlike its reading. A Fault if
        the last one does not come.
        """
        if select.select([self._peer], [], [], SILENCE_SECONDS if self._is_ending else at_most_s)[0]:
            return True
        if self._is_ending:
            raise silent()
        return False

    def read(self) -> Chunk:
        """The next chunk. A Fault if dl3d is gone, or stops in the middle of it."""
        self._peer.settimeout(SILENCE_SECONDS)
        n, is_last, captured, missed = HEAD.unpack(self._receive(HEAD.size))
        if n > MAX_BYTES:
            raise Fault("dl3d sent something else than a capture: use the same version of dl3")
        return Chunk(self._receive(n), captured, missed, bool(is_last))

    def reply(self) -> bytes:
        """The line before the first chunk; "" if there is none."""
        line = bytearray()
        while not line.endswith(b"\n") and len(line) < MAX_BYTES:
            byte = self._peer.recv(1)
            if not byte:
                return b""
            line += byte
        return bytes(line)

    def _receive(self, n: int) -> bytes:
        buffer = bytearray(n)
        view, at = memoryview(buffer), 0
        while at < n:
            try:
                got = self._peer.recv_into(view[at:])
            except ConnectionError:
                got = 0
            except TimeoutError as error:
                raise silent() from error
            if not got:
                raise Fault("dl3d ended in the middle of the capture")
            at += got
        return bytes(buffer)


@contextmanager
def capturing(path: Path, **params: object) -> Iterator[CaptureStream]:
    """Start a capture; parameters that are None are left out. It ends with the context at the latest."""
    given = {key: value for key, value in params.items() if value is not None}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "capture.start", "params": given}).encode() + b"\n"
    with socket.socket(socket.AF_UNIX) as peer:
        stream = CaptureStream(peer)
        peer.settimeout(REPLY_SECONDS)
        try:
            peer.connect(str(path))
            peer.sendall(line)
            reply = stream.reply()
        except TimeoutError as error:
            raise Fault(f"dl3d at {path} did not reply to 'capture.start' within {REPLY_SECONDS:g} s") from error
        except OSError as error:
            raise not_there(DL3D, path, error) from error
        result_of("capture.start", reply)
        yield stream
