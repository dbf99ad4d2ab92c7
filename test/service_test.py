"""What dl3d tells the service manager that started it: ready, reloading, alive, stopping (sd_notify(3))."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.wire import wait_until
from harness.wired import DL3D, Port, config_text

from dl3.lab.forwarder import Forwarder

PORTS = [Port("a", device="net_null0"), Port("b", device="net_null1")]
WATCHDOG_US = 400_000  # a sign of life each 0.1 s


class Manager:
    """The socket of a service manager, and what came in so far."""

    def __init__(self) -> None:
        self.name = f"dl3-service-test-{os.getpid()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(f"\0{self.name}")
        self.told: list[str] = []

    def was_told(self, *words: str) -> bool:
        """Whether these came in this order, with any number of signs of life between them."""
        while True:
            try:
                self.told.append(self.socket.recv(4096).decode().split("\n")[0])
            except BlockingIOError:
                return [word for word in self.told if word != "WATCHDOG=1"] == [*words]


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    made = Manager()
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{made.name}")
    monkeypatch.setenv("WATCHDOG_USEC", str(WATCHDOG_US))
    with made.socket:
        yield made


def a_service_manager_is_told_each_state(manager: Manager) -> None:
    forwarder = Forwarder(DL3D, config_text(PORTS))
    try:
        wait_until(lambda: manager.was_told("READY=1"), "dl3d said that it is ready")
        n_alive = len(manager.told)
        wait_until(
            lambda: manager.was_told("READY=1") and len(manager.told) > n_alive + 3, "dl3d said that it is alive"
        )
        forwarder.process.send_signal(signal.SIGHUP)
        after = ("READY=1", "RELOADING=1", "READY=1")
        wait_until(lambda: manager.was_told(*after), "dl3d said that it reloaded")
        forwarder.process.send_signal(signal.SIGTERM)
        wait_until(lambda: manager.was_told(*after, "STOPPING=1"), "dl3d said that it stops")
    finally:
        forwarder.close()


GIVEN = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], [sys.argv[2], "--hold", sys.argv[3]])
"""


def a_service_manager_that_listens_for_the_holder_starts_it_again(tmp_path: Path) -> None:
    """The one that comes takes a connection that was there before it; the path stays when it ends."""
    path = tmp_path / "dl3d.hold"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, Path("/dev/null").open() as held:
        listener.bind(str(path))
        listener.listen()
        command = [sys.executable, "-c", GIVEN, str(listener.fileno()), str(DL3D), str(path)]
        for _ in range(2):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(str(path))
                holder = subprocess.Popen(command, pass_fds=[listener.fileno()])
                socket.send_fds(client, [b"hold namespace/port"], [held.fileno()])
                assert client.recv(16) == b"ok"
                client.send(b"release namespace/port")
                assert client.recv(16) == b"ok"
            assert holder.wait(60) == 0
            assert path.exists()
