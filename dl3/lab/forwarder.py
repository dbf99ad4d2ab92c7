"""A private dl3d. With Linux as its control plane, its TAP interfaces are removed with it."""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dl3.lab.command import run
from dl3.lab.namespace import Namespace
from dl3.lab.program import Program, Surroundings
from dl3.model.fault import Fault


class Forwarder(Program):
    """dl3d with a configuration text, in its own folder, which is removed when the object is closed.

    `linux` is the configuration key of that name: {"namespace": NAME} for an existing namespace, {} for a private one.
    The TAP interfaces are in `taps`. They are removed when dl3d stops unless {"keep": True} is given, and in any case
    when the object is closed.
    """

    NAME = "dl3d"

    def __init__(
        self,
        program: Path,
        config: str,
        namespace: Namespace | None = None,
        options: Sequence[str] = (),
        linux: Mapping[str, Any] | None = None,
    ) -> None:
        self.linux = linux
        self._config = yaml.safe_load(config) if linux is not None else {}
        if linux is not None:
            config += "\n" + yaml.safe_dump({"linux": {"keep": False} | dict(linux)})
        super().__init__(program, config, Surroundings(namespace, options, shares_mounts=linux is not None))

    def socket_name(self) -> str:
        """A private namespace is named after the socket, so the name must be unique per forwarder."""
        return f"{self.folder.name}.sock"

    @property
    def taps(self) -> Namespace:
        """The namespace of the ports' TAP interfaces."""
        name = (self.linux or {}).get("namespace", self.folder.name)
        return Namespace(name)

    def close(self) -> None:
        """Stop dl3d; remove remaining TAP interfaces, its private namespace and its folder."""
        self.stop()
        if self.linux is not None:
            self._remove_taps()
        super().close()

    def holder(self) -> int | None:
        """The pid of the process that holds the TAP interfaces' carrier when dl3d has exited."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            try:
                peer.connect(str(self.socket.with_suffix(".hold")))
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(credentials[:4], sys.byteorder)

    def _remove_taps(self) -> None:
        holder = self.holder()
        if holder:
            os.kill(holder, signal.SIGTERM)
        for port in self._config["ports"]:
            with contextlib.suppress(Fault):
                self.taps.ip("link", "delete", "dev", port["name"])
        if "namespace" not in (self.linux or {}) and Path(f"/run/netns/{self.taps.name}").exists():
            run(["ip", "netns", "delete", self.taps.name])
