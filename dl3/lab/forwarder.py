"""A dl3d of one's own; where Linux is its control plane, with TAP interfaces that vanish with it."""

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
    """dl3d on a configuration text, in a folder of its own; the folder goes when the object is closed.

    `linux` is the file's key of that name, {"namespace": NAME} for one that exists, {} for one of dl3d's own; its TAP interfaces
    go when dl3d stops unless it says {"keep": True}, and in any case when the object is closed. They live in `taps`.
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
        """The namespace of one's own is named after it: no two forwarders may have the same."""
        return f"{self.folder.name}.sock"

    @property
    def taps(self) -> Namespace:
        """The namespace in which the ports have their TAP interfaces."""
        name = (self.linux or {}).get("namespace", self.folder.name)
        return Namespace(name)

    def close(self) -> None:
        """Stop it, remove the TAP interfaces that it left, its own namespace and its folder."""
        self.stop()
        if self.linux is not None:
            self._remove_taps()
        super().close()

    def holder(self) -> int | None:
        """The process that keeps the TAP interfaces' carrier when dl3d is gone."""
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
