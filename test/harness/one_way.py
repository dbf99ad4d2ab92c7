"""Datagrams that go from one host to another, numbered, and none back."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from dl3.lab.namespace import Namespace
from harness.wire import BUFFER_BYTES, SO_RCVBUFFORCE, wait_until

PORT = 5002
GAP_S = 0.02


@contextlib.contextmanager
def all_arriving(sender: Namespace, receiver: Namespace, address: str) -> Iterator[None]:
    """Datagrams are sent until the block ends; AssertionError unless each arrives once and in order. Hosts and routers
    on the way know each other's MAC addresses.
    """
    with receiver.entered():
        ear = socket.socket(type=socket.SOCK_DGRAM)
    with sender.entered():
        mouth = socket.socket(type=socket.SOCK_DGRAM)
    is_over, sent, got = threading.Event(), list[int](), list[int]()

    def send() -> None:
        while not is_over.wait(GAP_S):
            mouth.sendto(len(sent).to_bytes(4, "big"), (address, PORT))
            sent.append(len(sent))

    def drain() -> int:
        with contextlib.suppress(BlockingIOError):
            while True:
                got.append(int.from_bytes(ear.recv(4), "big"))
        return len(got)

    with ear, mouth:
        ear.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)  # nobody reads while the block waits
        ear.bind((address, PORT))
        ear.setblocking(False)
        thread = threading.Thread(target=send)
        thread.start()
        try:
            wait_until(lambda: drain() > 0, "the first datagram arrived")
            yield
            more = len(sent) + 10
            wait_until(lambda: len(sent) >= more and drain() > 0, "more datagrams were sent")
        finally:
            is_over.set()
            thread.join()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: drain() >= len(sent), "all datagrams arrived")
    lost, extra = sorted(set(sent) - set(got)), len(got) - len(set(got))
    assert got == sent, f"of {len(sent)} datagrams {len(lost)} are lost ({lost[:20]}), {extra} came twice"
