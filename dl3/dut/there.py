"""A device on another machine of the laboratory: its dl3d as a client here, and what that machine is."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dl3.control import remote
from dl3.control.client import DL3D, Client
from dl3.control.remote import Machine
from dl3.control.replies import Reply
from dl3.lab.pair import REPLY_TIMEOUT_S
from dl3.model.fault import Fault
from dl3.record import machine


@contextmanager
def dl3d_there(at: Machine, socket: Path, option: str = "--dut") -> Iterator[Client]:
    """The dl3d of the other machine, as a client on this one; who finds none there is told of the option."""
    with remote.near(at, socket) as path:
        client = Client(path, REPLY_TIMEOUT_S, DL3D)
        try:
            client.ask(Reply, "status")
        except Fault as fault:
            raise Fault(
                f"no dl3d answers at {socket} on {at}: start it there, or name its socket with {option}"
            ) from fault
        yield client


def facts_there(at: Machine) -> dict[str, object]:
    """What that machine is."""
    text = remote.run_python(at, Path(machine.__file__).read_text(encoding="utf-8"))
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Fault(f"what {at} says of itself is no JSON: does its shell print something at login?") from error
    return {"address": str(at), **found}
