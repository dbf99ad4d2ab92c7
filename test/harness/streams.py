"""TCP and UDP traffic between hosts over the kernel's own stack."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from dl3.lab.namespace import Namespace
from harness.network import Host

PORT = 5001
PATIENCE_S = 60.0
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def socket_in(namespace: Namespace, family: int, kind: socket.SocketKind) -> socket.socket:
    """A socket in a namespace."""
    with namespace.entered():
        made = socket.socket(FAMILY[family], kind)
    made.settimeout(PATIENCE_S)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


@contextlib.contextmanager
def counting(server: socket.socket) -> Iterator[list[int]]:
    """Accept one connection and count its bytes, in a thread; the list holds the count after the block."""
    counted: list[int] = []

    def receive() -> None:
        with contextlib.suppress(TimeoutError, ConnectionError):
            connection, _ = server.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                counted.append(0)
                while data := connection.recv(65536):
                    counted[0] += len(data)

    thread = threading.Thread(target=receive)
    thread.start()
    try:
        yield counted
    finally:
        thread.join()


def transfer(source: Host, target: Host, family: int, n_bytes: int) -> int:
    """Send this many bytes over TCP; returns how many arrived."""
    with socket_in(target.namespace, family, socket.SOCK_STREAM) as server:
        server.bind((target.address(family), PORT))
        server.listen(1)
        with counting(server) as counted, socket_in(source.namespace, family, socket.SOCK_STREAM) as client:
            client.connect((target.address(family), PORT))
            client.sendall(bytes(n_bytes))
    return sum(counted)
