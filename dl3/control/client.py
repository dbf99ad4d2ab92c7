"""JSON-RPC 2.0 client for the UNIX socket of dl3d or dl3gen: one request at a time, one object per line."""

import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dl3.control.replies import Response
from dl3.model.fault import AbsentFault, Fault, UsageFault

MAX_LINE_BYTES = 64 << 20  # `mirror` takes about 300 bytes for each of up to 65,535 interfaces
RECEIVE_BYTES = 1 << 16
METHOD_COMPLAINED = -32000  # invalid parameters, or an error in the file to be read
Kind = TypeVar("Kind", bound=BaseModel)


@dataclass(frozen=True)
class Program:
    """A program with a socket, and how to start it and give its socket."""

    name: str
    start: str
    option: str
    socket: Path


DL3D = Program("dl3d", "dl3 run FILE", "--socket", Path("/run/dl3d.sock"))
DL3GEN = Program("dl3gen", "dl3gen FILE", "--generator", Path("/run/dl3gen.sock"))
DEFAULT_SOCKET = DL3D.socket


def not_there(program: Program, path: Path, error: OSError) -> AbsentFault:
    """One sentence per reason why the connection failed."""
    name, start, option = program.name, program.start, program.option
    if isinstance(error, FileNotFoundError):
        return AbsentFault(
            f"cannot connect to {name} at {path}: no such socket; start it with '{start}', or specify its socket with {option}"
        )
    if isinstance(error, ConnectionRefusedError):
        if not path.is_socket():
            return AbsentFault(f"{path} is not a socket: specify that of {name} with {option}")
        return AbsentFault(f"the {name} that created {path} is no longer running: start it again with '{start}'")
    if isinstance(error, PermissionError):
        return AbsentFault(f"permission to use {path} denied: join its group, or run as root")
    return AbsentFault(f"{name} cannot be reached at {path}: {error.strerror or error}")


def read_line(peer: socket.socket, ends_s: float) -> bytes:
    """One line, however slowly it comes, without its end; TimeoutError once time.monotonic() is `ends_s`. What has come
    with it, of a stream that follows, is left out.
    """
    parts: list[bytes] = []
    n_bytes = 0
    while n_bytes <= MAX_LINE_BYTES and not (parts and b"\n" in parts[-1]):
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        peer.settimeout(left_s)
        parts.append(peer.recv(RECEIVE_BYTES))
        n_bytes += len(parts[-1])
        if not parts[-1]:
            break
    return b"".join(parts).partition(b"\n")[0]


def exchange(path: Path, line: bytes, timeout_s: float) -> bytes:
    """Send one line, receive one. A refused client may receive an error before its request is sent."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(timeout_s)
        ends_s = time.monotonic() + timeout_s
        peer.connect(str(path))
        closed: BrokenPipeError | None = None
        try:
            peer.sendall(line)
        except BrokenPipeError as error:
            closed = error
        response = read_line(peer, ends_s)
    if closed and not response:
        raise closed
    return response


def result_of(method: str, line: bytes, name: str = "dl3d") -> object:
    """The result of a reply. An error becomes a Fault, or a UsageFault if the method itself rejected the request."""
    try:
        response = Response.model_validate_json(line)
    except ValidationError as error:
        raise Fault(f"the reply to '{method}' is not JSON-RPC: is that {name}'s socket?") from error
    if response.error:
        kind = UsageFault if response.error.code == METHOD_COMPLAINED else Fault
        raise kind(response.error.message)
    return response.result


class Client:
    """A client of the program at a socket. Each request uses its own connection."""

    def __init__(self, path: Path = DEFAULT_SOCKET, timeout_s: float = 15.0, program: Program = DL3D) -> None:
        self.path, self.timeout_s, self.program = path, timeout_s, program

    def result(self, method: str, given: Mapping[str, object]) -> object:
        """Call a method; the result as it came."""
        name = self.program.name
        question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})
        try:
            line = exchange(self.path, question.encode() + b"\n", self.timeout_s)
        except TimeoutError as error:
            raise Fault(f"{name} at {self.path} did not reply to '{method}' within {self.timeout_s:g} s") from error
        except OSError as error:
            raise not_there(self.program, self.path, error) from error
        return result_of(method, line, name)

    def ask(self, kind: type[Kind], method: str, **params: object) -> Kind:
        """Call a method. Parameters that are None are omitted."""
        given = {key: value for key, value in params.items() if value is not None}
        try:
            return kind.model_validate(self.result(method, given))
        except ValidationError as error:
            place = ".".join(str(word) for word in error.errors()[0]["loc"])
            what = f"{self.program.name}'s reply to '{method}' has an unexpected value at '{place}'"
            raise Fault(f"{what}: use the same version of dl3") from error
