"""The control socket and the process life cycle: garbage, file modes, two instances, signals."""

import json
import signal
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.answers import CORES
from harness.wire import wait_until
from harness.wired import DL3D

from dl3.control.generator import Pauses, WorkerPause
from dl3.lab.forwarder import Forwarder
from dl3.model.fault import Fault

NULLS = """\
ports:
  - {name: a, device: net_null0}
  - {name: b, device: net_null1}
workers: [{core: CORE}]
routes: [10.2.0.0/16 dev b]
control: {socket: "@SOCKET@"}
memory: {hugepages: never}
""".replace("CORE", str(CORES[-1]))
GARBAGE = [
    b"garbage\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b'{"jsonrpc": "2.0", "id": 1, "method": "no.such.method"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n',
    b'{"jsonrpc": "1.0", "id": 1, "method": "status"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "status", "params": []}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "route", "params": {"address": "10.2.0"}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "route", "params": {"address": 7}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "routes", "params": {"limit": -1}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "routes.change", "params": {"changes": [{"op": "add", "route": "x"}]}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "routes.change", "params": {"changes": 1}}\n',
    b"\x00\xff\xfe\n",
    b"[" * 100_000 + b"\n",
]


@pytest.fixture(scope="module")
def dl3d() -> Iterator[Forwarder]:
    with Forwarder(DL3D, NULLS) as made:
        made.wait_ready()
        yield made


def _connect(dl3d: Forwarder) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(60.0)
    wait_until(lambda: _has_connected(client, dl3d), "there was room for another client")
    return client


def _has_connected(client: socket.socket, dl3d: Forwarder) -> bool:
    """False while the backlog of the socket is full."""
    try:
        client.connect(str(dl3d.socket))
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("line", GARBAGE, ids=[line[:60].decode("latin-1") for line in GARBAGE])
def garbage_gets_an_error_and_harms_nothing(dl3d: Forwarder, line: bytes) -> None:
    routes = dl3d.call("routes", family=4)
    with _connect(dl3d) as client, client.makefile("rb") as lines:
        client.sendall(line)
        reply = json.loads(lines.readline())
        assert "error" in reply
        assert reply["error"]["message"]
        client.sendall(b'{"jsonrpc": "2.0", "id": 2, "method": "status"}\n')
        assert "result" in json.loads(lines.readline())
    assert dl3d.call("routes", family=4) == routes


def a_line_beyond_the_limit_is_refused(dl3d: Forwarder) -> None:
    with _connect(dl3d) as client:
        try:
            client.sendall(b" " * (3 << 20) + b"\n")
            reply = client.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            reply = b""
    assert reply == b"" or "error" in json.loads(reply.splitlines()[0])
    assert "version" in dl3d.call("status")


def requests_in_pieces_and_in_packs_are_answered(dl3d: Forwarder) -> None:
    with _connect(dl3d) as client, client.makefile("rb") as lines:
        request = b'{"jsonrpc": "2.0", "id": 7, "method": "status"}\n'
        for i in range(0, len(request), 5):
            client.sendall(request[i : i + 5])
            time.sleep(0.001)
        assert json.loads(lines.readline())["id"] == 7
        client.sendall(request * 100)
        assert [json.loads(lines.readline())["id"] for _ in range(100)] == [7] * 100


def the_33rd_client_is_turned_away_and_the_others_are_served(dl3d: Forwarder) -> None:
    clients = [_connect(dl3d) for _ in range(40)]
    try:
        time.sleep(0.2)
        clients[0].sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n')
        assert b'"result"' in clients[0].recv(65536)
    finally:
        for client in clients:
            client.close()
    wait_until(lambda: _answers(dl3d), "a new client was served")


def _answers(dl3d: Forwarder) -> bool:
    try:
        return "version" in dl3d.call("status")
    except (OSError, Fault, ValueError):
        return False


def a_slow_reader_is_cut_off(dl3d: Forwarder) -> None:
    with _connect(dl3d) as client:
        client.settimeout(1.0)
        request = b'{"jsonrpc": "2.0", "id": 1, "method": "help"}\n' * 1000
        try:
            for _ in range(1000):
                client.sendall(request)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        assert "version" in dl3d.call("status")


def the_socket_is_for_its_group(dl3d: Forwarder) -> None:
    assert stat.S_IMODE(dl3d.socket.stat().st_mode) == 0o660


def a_socket_in_use_is_refused_and_lives_on(dl3d: Forwarder) -> None:
    with Forwarder(DL3D, NULLS.replace("@SOCKET@", str(dl3d.socket))) as second:
        assert second.process.wait(60) in (1, 2)
        assert len(second.stderr.splitlines()) == 1
        assert str(dl3d.socket) in second.stderr
    assert "version" in dl3d.call("status")


def a_dead_socket_is_replaced(tmp_path: Path) -> None:
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    with Forwarder(DL3D, NULLS.replace("@SOCKET@", str(left))) as made:
        made.socket = left
        made.wait_ready()


def two_run_side_by_side(dl3d: Forwarder) -> None:
    with Forwarder(DL3D, NULLS) as second:
        second.wait_ready()
        assert second.call("status")["pid"] != dl3d.call("status")["pid"]


@pytest.mark.timing
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def a_signal_ends_it_within_a_second_and_nothing_stays(how: signal.Signals) -> None:
    with Forwarder(DL3D, NULLS) as made:
        made.wait_ready()
        start = time.monotonic()
        assert made.stop(how) == 0, made.stderr
        assert time.monotonic() - start < 1.0
        assert not made.socket.exists()
        assert not Path(f"/run/dpdk/dl3d-{made.process.pid}").exists()


def the_method_stop_ends_it() -> None:
    with Forwarder(DL3D, NULLS) as made:
        made.wait_ready()
        made.call("stop")
        assert made.process.wait(60) == 0
        assert not made.socket.exists()


@pytest.mark.timing
def a_forwarder_that_stood_still_reports_when_and_how_long(dl3d: Forwarder) -> None:
    stopped_s = 0.05
    dl3d.process.send_signal(signal.SIGSTOP)
    before_ns = time.monotonic_ns()
    time.sleep(stopped_s)
    after_ns = time.monotonic_ns()
    dl3d.process.send_signal(signal.SIGCONT)

    def reported() -> list[WorkerPause]:
        gaps = Pauses.model_validate(dl3d.call("gaps", min_us=0.9e6 * stopped_s)).gaps
        return [gap for gap in gaps if gap.at_ns > before_ns + 0.9e9 * stopped_s]

    wait_until(lambda: bool(reported()), "the gap was reported")
    (gap,) = reported()
    assert (gap.worker, gap.core) == (0, CORES[-1])
    assert gap.us * 1e3 > after_ns - before_ns - 2e6
    assert gap.at_ns - gap.us * 1e3 < before_ns + 2e6
