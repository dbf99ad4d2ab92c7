"""--watch in a terminal of 24 lines, and without a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
N_ROUTES, LINES = 90, 24
PATIENCE_S = 30.0
ROUTES = [
    {"prefix": f"10.{n}.0.0/16", "kind": "via", "via": "10.0.0.1", "port": "out", "interface": "out"}
    for n in range(N_ROUTES)
]
REPLY = {"routes": ROUTES, "next": None}


class Forwarder(StreamRequestHandler):
    """A dl3d with these routes, as far as they are requested."""

    def handle(self) -> None:
        """One client."""
        for line in self.rfile:
            response = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": REPLY}
            self.wfile.write(json.dumps(response).encode() + b"\n")


@contextmanager
def replying(path: Path) -> Iterator[None]:
    """The socket at which it replies."""
    with ThreadingUnixStreamServer(str(path), Forwarder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


class Terminal:
    """A terminal of 24 lines in which the command runs."""

    def __init__(self, socket_path: Path) -> None:
        self.seen = b""
        self.fd, there = pty.openpty()
        termios.tcsetwinsize(there, (LINES, 100))
        command = [sys.executable, "-m", "dl3", "show", "routes", "--watch", "--socket", str(socket_path)]
        words = ["setsid", "--ctty", "--wait", *command]
        env = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(words, cwd=TOP, env=env, stdin=there, stdout=there, stderr=there)
        os.close(there)

    def await_text(self, wanted: str) -> list[str]:
        """The output up to this text."""
        self.seen, until_s = b"", time.monotonic() + PATIENCE_S
        while wanted not in (text := re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen.decode(errors="replace"))):
            left_s = until_s - time.monotonic()
            assert left_s > 0, f"{wanted!r} never came: {text[-2000:]}"
            if select.select([self.fd], [], [], left_s)[0]:
                self.seen += os.read(self.fd, 65536)
        return text.splitlines()

    def press(self, key: bytes) -> None:
        """One or more keys."""
        os.write(self.fd, key)

    def end(self) -> int:
        """Ctrl-C; returns the exit status."""
        self.press(b"\x03")
        with suppress(OSError):  # EIO: the terminal is closed
            while os.read(self.fd, 65536):
                pass
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with replying(tmp_path / "s"):
        made = Terminal(tmp_path / "s")
        try:
            yield made
        finally:
            os.close(made.fd)


def moves_through_what_is_too_long_for_the_terminal(terminal: Terminal) -> None:
    first = terminal.await_text("lines 1 to 23 of 91; arrow and page keys scroll, Ctrl-C quits")
    assert any("10.0.0.0/16" in line for line in first)
    assert not any("10.30.0.0/16" in line for line in first)
    for key, wanted, prefix in (
        (b"\x1b[6~", "lines 24 to 46 of 91", "10.30.0.0/16"),
        (b"\x1b[B", "lines 25 to 47 of 91", "10.45.0.0/16"),
        (b"\x1b[F", "lines 69 to 91 of 91", "10.89.0.0/16"),
        (b"j", "lines 69 to 91 of 91", "10.89.0.0/16"),
        (b"k", "lines 68 to 90 of 91", "10.66.0.0/16"),
        (b"gj", "lines 2 to 24 of 91", "10.22.0.0/16"),
    ):
        terminal.press(key)
        seen = terminal.await_text(wanted)
        assert any(prefix in line for line in seen), (key, seen)
    assert terminal.end() == 130


def gives_the_terminal_back_as_it_was(terminal: Terminal) -> None:
    before = termios.tcgetattr(terminal.fd)
    terminal.await_text("lines 1 to 23 of 91")
    assert termios.tcgetattr(terminal.fd)[3] != before[3]
    assert terminal.end() == 130
    assert termios.tcgetattr(terminal.fd) == before


def prints_one_below_the_other_where_there_is_no_terminal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dl3", "show", "routes", "--watch", "--interval", "0.1"]
    with replying(tmp_path / "s"):
        words = [*command, "--socket", str(tmp_path / "s")]
        with subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout
            lines = [next(watching.stdout).split() for _ in range(2 * (N_ROUTES + 2))]
            watching.send_signal(signal.SIGINT)
            watching.stdout.read()
            assert watching.wait(PATIENCE_S) == 130
    assert lines[0][0] == lines[N_ROUTES + 2][0] == "prefix"
    assert [line[0] for line in lines[1 : N_ROUTES + 1]] == [route["prefix"] for route in ROUTES]
    assert lines[N_ROUTES + 1] == []
