"""Counters of a DPDK program on this machine by its telemetry socket, for what the program itself does not print."""

import json
import os
import socket
from pathlib import Path

from dl3.model.fault import Fault

SOCKET = Path(os.environ.get("RUNTIME_DIRECTORY", "/var/run"), "dpdk", "rte", "dpdk_telemetry.v2")
MOST = 1 << 16
SECONDS = 30.0


def ethdev_stats(port: int) -> dict[str, int]:
    """Frames that the port's device missed, of the only DPDK program here."""
    command = f"/ethdev/stats,{port}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
            line.settimeout(SECONDS)
            line.connect(str(SOCKET))
            line.recv(MOST)  # a greeting
            line.send(command.encode())
            found = json.loads(line.recv(MOST))[command.partition(",")[0]]
            return {"missed": found["imissed"] + found["ierrors"] + found["rx_nombuf"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Fault(f"the telemetry of DPDK at {SOCKET} cannot be read: {error}") from error
