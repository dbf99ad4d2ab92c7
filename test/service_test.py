"""What dl3d tells the service manager that started it: ready, reloading, alive, stopping (sd_notify(3))."""

import os
import signal
import socket
from collections.abc import Iterator

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
