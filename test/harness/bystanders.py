"""Guests that exchange numbered frames, beside others that are hostile: none of the frames may be lost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from dl3.control.replies import Port, Ports
from dl3.lab.forwarder import Forwarder
from harness.vhost import guest_mac
from harness.vhost_driver import SLOTS, VhostDriver
from harness.wire import Wire, wait_until
from harness.wired import Account

UNDER_WAY = SLOTS // 2  # frames, at most: less than a ring holds
AT_ONCE = 16


def port_of(dl3d: Forwarder, name: str) -> Port:
    """A port as dl3d reports it."""
    (found,) = [port for port in Ports.model_validate(dl3d.call("ports")).ports if port.name == name]
    return found


def is_up(dl3d: Forwarder, name: str) -> bool:
    """Whether a port has a link."""
    return port_of(dl3d, name).link_up


def remark_of(dl3d: Forwarder, name: str) -> str:
    """What dl3d has to say about the peer of a port; empty: nothing."""
    vhost = port_of(dl3d, name).vhost
    assert vhost
    return vhost.remark or ""


@cache
def _headers(mac: str, source: int, to: int, size: int) -> bytes:
    head = Ether(src=guest_mac(source), dst=mac) / IP(src=f"10.0.{source + 1}.2", dst=f"10.0.{to + 1}.2")
    return bytes(head / UDP(sport=9, dport=9, chksum=0) / bytes(size))[:-size]


def frame_to(mac: str, source: int, to: int, number: int, size: int = 60) -> bytes:
    """A frame from the guest at port number `source`, whose port has `mac`, to the one at port number `to`."""
    return _headers(mac, source, to, size) + number.to_bytes(4, "big") * (size // 4)


def number_in(frame: bytes) -> int:
    """The number in one of these frames, all of which must have arrived."""
    assert frame[42:46] * 15 == frame[42:102], frame
    return int.from_bytes(frame[42:46], "big")


@dataclass(frozen=True)
class Cable:
    """The far end of a port that is no guest's, and the port's number."""

    wire: Wire
    index: int


@dataclass
class Bystanders:
    """The guest at port 0 sends to the one at port 1 and to a cable, and `noise` to those that are hostile."""

    dl3d: Forwarder
    sender: VhostDriver
    receiver: VhostDriver
    noise: Sequence[bytes] = ()
    cable: Cable | None = None
    sent: int = 0
    arrived: int = 0
    mac: str = field(init=False)

    def __post_init__(self) -> None:
        self.mac = port_of(self.dl3d, "vm1").mac

    def _take(self) -> None:
        frames = [frame for ring in self.receiver.rings[::2] for frame in ring.take()]
        if self.cable:
            frames += self.cable.wire.drain()
        for frame in frames:
            number_in(frame)
        self.arrived += len(frames)

    def _next(self, to: int) -> bytes:
        return frame_to(self.mac, 0, to, self.sent)

    def exchange(self) -> None:
        """Send what fits, and take what has arrived: never more are under way than a ring holds."""
        for ring in self.sender.rings[1::2]:
            for to in (1, self.cable.index) if self.cable else (1,):
                if self.sent - self.arrived < UNDER_WAY and ring.offer(self._next(to)):
                    self.sent += 1
            for frame in self.noise:
                ring.offer(frame)
        self._take()

    def exchange_more(self, frames: int, beside: str) -> None:
        """Exchange until so many more frames have arrived."""
        enough = self.arrived + frames

        def is_enough() -> bool:
            for _ in range(AT_ONCE):
                self.exchange()
            return self.arrived >= enough

        wait_until(is_enough, f"others had their frames beside {beside}")

    def settle(self) -> None:
        """Wait until all has arrived, and the account is closed."""

        def is_settled() -> bool:
            self._take()
            return self.arrived == self.sent

        wait_until(is_settled, "all frames had arrived")
        wait_until(lambda: Account.of(self.dl3d.call("drops")).is_closed, "the account balanced")

    def serve(self, guest: VhostDriver, name: str, index: int) -> None:
        """A guest that follows a hostile one at port number `index` gets frames, and sends one."""
        wait_until(lambda: is_up(self.dl3d, name), "the port was up")
        into, out = guest.rings[:2]
        ring = self.sender.rings[1]

        def has_arrived() -> bool:
            ring.offer(frame_to(self.mac, 0, index, 7))  # again: the port is up before its rings are
            return any(frame[42:46] == b"\0\0\0\7" for frame in into.take())

        wait_until(has_arrived, "a frame had arrived")
        used = out.used
        assert out.offer(frame_to(port_of(self.dl3d, name).mac, index, 1, self.sent))
        self.sent += 1
        wait_until(lambda: out.used != used, "a frame was taken")
        self.settle()
