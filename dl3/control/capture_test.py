"""The stream of a capture, from a dl3d that hangs."""

import socket
from collections.abc import Iterator

import pytest

from dl3.control.capture import HEAD, CaptureStream
from dl3.model.fault import Fault


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    monkeypatch.setattr("dl3.control.capture.SILENCE_SECONDS", 0.05)
    ours, other = socket.socketpair()
    with ours, other:
        yield ours, other


def a_last_chunk_that_does_not_come_is_given_up(peers: tuple[socket.socket, socket.socket]) -> None:
    stream = CaptureStream(peers[0])
    stream.end()
    with pytest.raises(Fault, match="sent nothing of the capture"):
        stream.wait()


@pytest.mark.parametrize("n", [1, HEAD.size, HEAD.size + 3])
def half_a_chunk_is_given_up(peers: tuple[socket.socket, socket.socket], n: int) -> None:
    peers[1].sendall((HEAD.pack(4, 0, 1, 0) + b"1234")[:n])
    stream = CaptureStream(peers[0])
    stream.wait()
    with pytest.raises(Fault, match="sent nothing of the capture"):
        stream.read()


def a_chunk_is_read_after_the_end_was_asked_for(peers: tuple[socket.socket, socket.socket]) -> None:
    stream = CaptureStream(peers[0])
    stream.end()
    peers[1].sendall(HEAD.pack(4, 1, 7, 2) + b"1234")
    stream.wait()
    chunk = stream.read()
    assert (chunk.blocks, chunk.is_last, chunk.captured, chunk.missed) == (b"1234", True, 7, 2)
