"""Bytes that go over TCP from one host to another, whole."""

import hashlib
import random
import socket
import threading

from dl3.lab.namespace import Namespace

PORT = 5001
PATIENCE_S = 180.0


def carry(client: Namespace, server: Namespace, address: str, n_bytes: int) -> None:
    """Send random bytes to an address of the server; AssertionError if it does not get just these."""
    data, digests = random.Random(1).randbytes(n_bytes), list[str]()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with server.entered():
        listener = socket.create_server((address, PORT), family=family)
    listener.settimeout(PATIENCE_S)

    def serve() -> None:
        with listener.accept()[0] as peer:
            peer.settimeout(PATIENCE_S)
            digest = hashlib.sha256()
            while got := peer.recv(1 << 16):
                digest.update(got)
            digests.append(digest.hexdigest())

    reader = threading.Thread(target=serve)
    reader.start()
    with client.entered():
        sender = socket.socket(family)
    with sender:
        sender.settimeout(PATIENCE_S)
        sender.connect((address, PORT))
        sender.sendall(data)
    reader.join(PATIENCE_S)
    listener.close()
    assert digests == [hashlib.sha256(data).hexdigest()]
