"""Tests of the client against a server on a real UNIX socket."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dl3.control.client import DL3GEN, Client
from dl3.control.replies import Reloaded, Routes
from dl3.model.fault import Fault, UsageFault

RELOADED = {"reloads": 3, "routes4": 2, "routes6": 1}


@contextmanager
def server(path: Path, reply: Callable[[dict[str, object]], bytes]) -> Iterator[list[dict[str, object]]]:
    """Serve one request of one client; yields the list of requests received."""
    received: list[dict[str, object]] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer, peer.makefile("rb") as stream:
                received.append(json.loads(stream.readline()))
                peer.sendall(reply(received[-1]))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield received
        thread.join(5)


def result(value: object) -> Callable[[dict[str, object]], bytes]:
    return lambda question: json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": value}).encode() + b"\n"


def sends_a_request_and_parses_the_reply(tmp_path: Path) -> None:
    with server(tmp_path / "s", result(RELOADED)) as received:
        assert Client(tmp_path / "s").ask(Reloaded, "reload").routes4 == 2
    assert received == [{"jsonrpc": "2.0", "id": 1, "method": "reload", "params": {}}]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "32 are here"}}\n', "^32 are here$"),
        (b"", "cannot be reached"),
    ],
)
def reports_why_it_was_refused_before_its_request(tmp_path: Path, line: bytes, words: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()

        def turn_away() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(line)

        thread = threading.Thread(target=turn_away, daemon=True)
        thread.start()
        with pytest.raises(Fault, match=words):
            Client(tmp_path / "s").ask(Reloaded, "reload", more="x" * 10_000_000)  # larger than the socket buffer
        thread.join(5)


def a_reply_ends_with_its_line(tmp_path: Path) -> None:
    with server(tmp_path / "s", lambda question: result(RELOADED)(question) + b"a stream\xff"):
        assert Client(tmp_path / "s").ask(Reloaded, "reload").routes4 == 2


def leaves_out_parameters_that_are_none(tmp_path: Path) -> None:
    with server(tmp_path / "s", result({"routes": [], "next": None})) as received:
        Client(tmp_path / "s").ask(Routes, "routes", family=6, after=None, limit=5)
    assert received[0]["params"] == {"family": 6, "limit": 5}


def takes_a_reply_that_lists_every_interface_there_can_be(tmp_path: Path) -> None:
    with server(tmp_path / "s", result({**RELOADED, "interfaces": ["x" * 300] * 65535})):
        assert Client(tmp_path / "s").ask(Reloaded, "reload").reloads == 3


def keeps_unknown_fields(tmp_path: Path) -> None:
    with server(tmp_path / "s", result({**RELOADED, "new": [1]})):
        assert Client(tmp_path / "s").ask(Reloaded, "reload").model_dump()["new"] == [1]


@pytest.mark.parametrize(("code", "kind"), [(-32000, UsageFault), (-32001, Fault), (-32601, Fault)])
def passes_on_errors_of_dl3d(code: int, kind: type[Fault], tmp_path: Path) -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "needs a restart: burst"}}
    with (
        server(tmp_path / "s", lambda _: json.dumps(error).encode() + b"\n"),
        pytest.raises(Fault, match=r"^needs a restart: burst$") as caught,
    ):
        Client(tmp_path / "s").ask(Reloaded, "reload")
    assert caught.type is kind


def reports_when_the_path_is_no_socket(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault, match=r"/file is not a socket: specify that of dl3d with --socket$"):
        Client(tmp_path / "file").ask(Reloaded, "reload")


@pytest.mark.parametrize("garbage", [b"", b"\n", b"garbage\n", b"[]\n", b'{"id": 1}\n'])
def reports_a_reply_that_is_not_json_rpc(garbage: bytes, tmp_path: Path) -> None:
    with (
        server(tmp_path / "s", lambda _: garbage),
        pytest.raises(Fault, match="the reply to 'reload' is not JSON-RPC"),
    ):
        Client(tmp_path / "s").ask(Reloaded, "reload")


def names_the_field_that_is_missing(tmp_path: Path) -> None:
    with (
        server(tmp_path / "s", result({"reloads": 1, "routes4": 1})),
        pytest.raises(Fault, match="an unexpected value at 'routes6'"),
    ):
        Client(tmp_path / "s").ask(Reloaded, "reload")


def reports_when_no_program_has_the_socket(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"cannot connect to dl3d at .*/none: no such socket; start it with 'dl3 run FILE'"):
        Client(tmp_path / "none").ask(Reloaded, "reload")


def names_the_program_that_it_asks(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"cannot connect to dl3gen .* with 'dl3gen FILE', .* with --generator$"):
        Client(tmp_path / "none", program=DL3GEN).ask(Reloaded, "results")
    with (
        server(tmp_path / "s", result({})),
        pytest.raises(Fault, match=r"^dl3gen's reply to 'send' has an unexpected value at 'reloads'"),
    ):
        Client(tmp_path / "s", program=DL3GEN).ask(Reloaded, "send")


def reports_when_the_owner_of_the_socket_is_gone(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    with pytest.raises(Fault, match=r"the dl3d that created .*/s is no longer running"):
        Client(tmp_path / "s").ask(Reloaded, "reload")


def does_not_wait_for_ever(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        with pytest.raises(Fault, match=r"did not reply to 'reload' within 0\.2 s"):
            Client(tmp_path / "s", timeout_s=0.2).ask(Reloaded, "reload")
