"""The http server: a thread for each connection, few of them, and none waits for a silent client."""

import contextlib
import socket
import threading
from collections.abc import Callable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from dl3.metrics.target import Targets, log
from dl3.model.fault import Fault, UsageFault

DEFAULT_PORT = 9883
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"
CONNECTIONS = 16
SILENCE_S = 10.0  # how long a client may send nothing, or receive nothing
LARGEST_PORT = 65535
PATH = "/metrics"

Start = Callable[..., Any]


class Handler(WSGIRequestHandler):
    """No log line for each request."""

    timeout = SILENCE_S

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, WSGIServer):
    """Any number of clients, a few at a time."""

    daemon_threads = True

    def __init__(self, family: int, address: tuple[str, int]) -> None:
        self.address_family = family
        self.room = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Without asking a name server for the name of the host."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread; one client too many is turned away."""
        if not self.room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no further thread
            self.room.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client has gone: its own business."""


def pages(targets: Targets) -> Callable[[dict[str, Any], Start], Any]:
    """The application: the metrics at one path, nothing elsewhere."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(targets)
    metrics: Any = make_wsgi_app(registry)

    def page(environ: dict[str, Any], start: Start) -> Any:
        if environ.get("PATH_INFO") == PATH:
            return metrics(environ, start)
        start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"The metrics of dl3d are at {PATH}\n".encode()]

    return page


def parsed(text: str) -> tuple[str, int]:
    """ADDRESS:PORT; an IPv6 address in brackets; no address: any."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > LARGEST_PORT or "/" in host:
        raise UsageFault(
            f"--listen {text}: give an address and a port, such as {DEFAULT_ADDRESS} or [::1]:{DEFAULT_PORT}"
        )
    return host, int(port)


def opened(listen: str, targets: Targets) -> Server:
    """The server, listening."""
    host, port = parsed(listen)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or "::", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICHOST
        )[0]
        server = Server(family, (str(address[0]), int(address[1])))
    except socket.gaierror as error:
        raise UsageFault(f"--listen {listen}: {host} is not an IP address; use {DEFAULT_ADDRESS}") from error
    except OSError as error:
        raise Fault(
            f"cannot listen at {listen}: {error.strerror or error}; choose another one with --listen"
        ) from error
    server.set_app(pages(targets))
    return server


def serve(server: Server) -> None:
    """Until Ctrl-C."""
    host, port = server.server_name, server.server_port
    log(f"metrics at http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    with contextlib.closing(server.socket):
        server.serve_forever()
