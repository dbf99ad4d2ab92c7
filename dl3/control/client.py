"""One question at a time over the UNIX socket of dl3d or dl3gen: JSON-RPC 2.0, one object per line."""

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dl3.control.replies import Answer
from dl3.model.fault import Fault, UsageFault

MAX_LINE_BYTES = 16 << 20
METHOD_COMPLAINED = -32000  # about its parameters, or about the file that it was to read
Kind = TypeVar("Kind", bound=BaseModel)


@dataclass(frozen=True)
class Program:
    """Who is behind a socket, and what to type when nobody is."""

    name: str
    start: str
    option: str
    socket: Path


DL3D = Program("dl3d", "dl3 run FILE", "--socket", Path("/run/dl3d.sock"))
DL3GEN = Program("dl3gen", "dl3gen FILE", "--generator", Path("/run/dl3gen.sock"))
DEFAULT_SOCKET = DL3D.socket


def not_there(program: Program, path: Path, error: OSError) -> Fault:
    """One sentence for each way in which nobody answers."""
    name, start, option = program.name, program.start, program.option
    if isinstance(error, FileNotFoundError):
        return Fault(f"no {name} has a socket at {path}: start it with '{start}', or name its socket with {option}")
    if isinstance(error, ConnectionRefusedError):
        if not path.is_socket():
            return Fault(f"{path} is no socket: name that of {name} with {option}")
        return Fault(f"the {name} that made {path} is gone: start it again with '{start}'")
    if isinstance(error, PermissionError):
        return Fault(f"you may not use {path}: join its group, or become root")
    return Fault(f"{name} cannot be reached at {path}: {error.strerror or error}")


def exchange(path: Path, line: bytes, timeout_s: float) -> bytes:
    """Send one line, receive one; who is turned away at the door may be told why before having asked."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(timeout_s)
        peer.connect(str(path))
        closed: BrokenPipeError | None = None
        try:
            peer.sendall(line)
        except BrokenPipeError as error:
            closed = error
        with peer.makefile("rb") as stream:
            answer = stream.readline(MAX_LINE_BYTES + 1)
    if closed and not answer:
        raise closed
    return answer


def result_of(method: str, line: bytes, name: str = "dl3d") -> object:
    """What the reply holds; its error becomes a Fault, a UsageFault when the method itself complains."""
    try:
        answer = Answer.model_validate_json(line)
    except ValidationError as error:
        raise Fault(f"the answer to '{method}' is no JSON-RPC: is that {name}'s socket?") from error
    if answer.error:
        kind = UsageFault if answer.error.code == METHOD_COMPLAINED else Fault
        raise kind(answer.error.message)
    return answer.result


class Client:
    """Asks the program at a socket; each question is a connection of its own."""

    def __init__(self, path: Path = DEFAULT_SOCKET, timeout_s: float = 15.0, program: Program = DL3D) -> None:
        self.path, self.timeout_s, self.program = path, timeout_s, program

    def ask(self, kind: type[Kind], method: str, **params: object) -> Kind:
        """Run a method; parameters that are None are left out."""
        name = self.program.name
        given = {key: value for key, value in params.items() if value is not None}
        question = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})
        try:
            line = exchange(self.path, question.encode() + b"\n", self.timeout_s)
        except TimeoutError as error:
            raise Fault(f"{name} at {self.path} did not answer '{method}' within {self.timeout_s:g} s") from error
        except OSError as error:
            raise not_there(self.program, self.path, error) from error
        try:
            return kind.model_validate(result_of(method, line, name))
        except ValidationError as error:
            place = ".".join(str(word) for word in error.errors()[0]["loc"])
            what = f"{name}'s answer to '{method}' is not understood at '{place}'"
            raise Fault(f"{what}: use dl3 of its version") from error
