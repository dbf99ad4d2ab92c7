"""The far end of a cable: frames in, frames out, byte for byte."""

import socket
import struct
import time
from collections.abc import Callable

from dl3.lab.namespace import End

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_AUXDATA = 8
PACKET_IGNORE_OUTGOING = 23
TP_STATUS_VLAN_VALID = 0x10
AUXDATA = struct.Struct("IIIHHHH")
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 16 << 20


class Wire:
    """A packet socket on one end of a cable."""

    def __init__(self, end: End) -> None:
        self.end = end
        with end.namespace.entered():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.bind((end.device, ETH_P_ALL))

    def send(self, frame: bytes) -> None:
        """Send one frame, starting with its destination MAC address, without FCS."""
        self._socket.send(frame)

    def receive(self, timeout_s: float = 0.0) -> bytes | None:
        """The next frame, or None if none arrives in time. A VLAN tag removed by Linux is restored."""
        self._socket.settimeout(max(timeout_s, 1e-6))
        try:
            frame, extra, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(AUXDATA.size))
        except (TimeoutError, BlockingIOError):
            return None
        for _, _, data in extra:
            status, _, _, _, _, tag, kind = AUXDATA.unpack(data[: AUXDATA.size])
            if status & TP_STATUS_VLAN_VALID:
                frame = frame[:12] + struct.pack("!HH", kind or 0x8100, tag) + frame[12:]
        return frame

    def drain(self) -> list[bytes]:
        """All frames received so far."""
        frames = []
        while (frame := self.receive()) is not None:
            frames.append(frame)
        return frames

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def wait_until(is_true: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Poll until `is_true` holds; AssertionError with `what` if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain until {what}")
        time.sleep(0.01)
