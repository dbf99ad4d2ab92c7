"""A device on the other machine of a testbed: a client of its dl3d, and the facts of that machine."""

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
    """A local client of the other machine's dl3d; errors refer to the option."""
    with remote.near(at, socket) as path:
        client = Client(path, REPLY_TIMEOUT_S, DL3D)
        try:
            client.ask(Reply, "status")
        except Fault as fault:
            raise Fault(f"no dl3d at {socket} on {at}: start it there, or specify its socket with {option}") from fault
        yield client


def facts_there(at: Machine) -> dict[str, object]:
    """Facts of the other machine."""
    text = remote.run_python(at, Path(machine.__file__).read_text(encoding="utf-8"))
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Fault(
            f"the facts reported by {at} are not valid JSON: does its shell print something at login?"
        ) from error
    return {"address": str(at), **found}
