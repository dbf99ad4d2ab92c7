"""Guests at vhost-user ports that write anything to their rings and sockets: the others lose nothing."""

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
import yaml
from harness.answers import CORES
from harness.vhost import guest_mac
from harness.vhost_driver import MULTIQUEUE, SET_FEATURES, SET_VRING_KICK, SET_VRING_NUM, SLOTS, USUAL, VhostDriver
from harness.vhost_hostile import GET_VRING_BASE, RESET_OWNER, SET_LOG_BASE, HostileDriver
from harness.wire import wait_until
from harness.wired import DL3D, Account
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from dl3.control.replies import Port, Ports
from dl3.lab.forwarder import Forwarder

NAMES = ("vm1", "vm2", "bad", "jumbo")
HOSTILE = {"bad": 2, "jumbo": 3}  # at these places
STEPS, ROUNDS = 40, 500
REFUSED = {
    "it has sent RESET_OWNER, which is obsolete": ((RESET_OWNER, b""),),
    "it has sent a message that no network device needs": ((SET_LOG_BASE, bytes(16)),),
    "it has changed a ring that is in use": ((SET_VRING_NUM, struct.pack("=II", 0, SLOTS)),),
    "it has changed its features while it had rings": ((SET_FEATURES, struct.pack("=Q", USUAL ^ MULTIQUEUE)),),
    "it has started a ring before it was set up": (
        (GET_VRING_BASE, bytes(8)),
        (SET_VRING_KICK, bytes([0, 1, *bytes(6)])),
    ),
}
# Buffers of one of them are mergeable, and it may leave frames unfinished.
KEYS: dict[str, dict[str, object]] = {"jumbo": {"mtu": 9000, "offloads": "on"}}


def _text(folder: Path) -> str:
    ports = [
        {
            "name": name,
            "addresses": [f"10.0.{i + 1}.1/24"],
            "vhost": {"socket": str(folder / name), "mode": "server", "queues": 2, **KEYS.get(name, {})},
        }
        for i, name in enumerate(NAMES)
    ]
    whole = {
        "ports": ports,
        "workers": [{"core": CORES[0]}],
        "neighbours": [f"10.0.{i + 1}.2 lladdr {guest_mac(i)} dev {name}" for i, name in enumerate(NAMES)],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return yaml.safe_dump(whole, sort_keys=False)


def _port(dl3d: Forwarder, name: str) -> Port:
    (found,) = [port for port in Ports.model_validate(dl3d.call("ports")).ports if port.name == name]
    return found


def _is_up(dl3d: Forwarder, name: str) -> bool:
    return _port(dl3d, name).link_up


def _frame(mac: str, source: int, to: int, number: int, size: int = 60) -> bytes:
    head = Ether(src=guest_mac(source), dst=mac) / IP(src=f"10.0.{source + 1}.2", dst=f"10.0.{to + 1}.2")
    return bytes(head / UDP(sport=9, dport=9) / (number.to_bytes(4, "big") * (size // 4)))


class _Guests:
    """A guest sends numbered frames to another one, and some to those that are hostile."""

    def __init__(self, dl3d: Forwarder, sender: VhostDriver, receiver: VhostDriver) -> None:
        self._dl3d, self._sender, self._receiver = dl3d, sender, receiver
        self._mac = _port(dl3d, "vm1").mac
        self.sent = self.arrived = 0
        self._noise = [_frame(self._mac, 0, to, 0, size) for to in HOSTILE.values() for size in (60, 1400)]

    def exchange(self) -> None:
        """Send what fits, and take what has arrived: never more are under way than the ring holds."""
        for ring in self._sender.rings[1::2]:
            if self.sent - self.arrived < SLOTS // 2 and ring.offer(_frame(self._mac, 0, 1, self.sent)):
                self.sent += 1
            for frame in self._noise:
                ring.offer(frame)
        for ring in self._receiver.rings[::2]:
            for frame in ring.take():
                assert frame[42:46] * 15 == frame[42:102], frame
                self.arrived += 1

    def settle(self) -> None:
        """Wait until all has arrived, and the account is closed."""

        def is_settled() -> bool:
            for ring in self._receiver.rings[::2]:
                self.arrived += len(ring.take())
            return self.arrived == self.sent

        wait_until(is_settled, "all frames had arrived")
        wait_until(lambda: Account.of(self._dl3d.call("drops")).is_closed, "the account balanced")

    def serve(self, name: str, path: Path) -> None:
        """A guest that follows a hostile one gets frames, and sends some."""
        with VhostDriver(path, 1) as fresh:
            wait_until(lambda: _is_up(self._dl3d, name), "the port was up")
            into, out = fresh.rings
            ring = self._sender.rings[1]
            wait_until(lambda: ring.offer(_frame(self._mac, 0, HOSTILE[name], 7)), "the ring had space")
            wait_until(lambda: any(frame[42:46] == b"\0\0\0\7" for frame in into.take()), "a frame had arrived")
            assert out.offer(_frame(_port(self._dl3d, name).mac, HOSTILE[name], 1, self.sent))
            self.sent += 1
            wait_until(lambda: out.used == 1, "a frame was taken")
            self.settle()


@pytest.fixture
def dl3d(tmp_path: Path) -> Iterator[Forwarder]:
    with Forwarder(DL3D, _text(tmp_path)) as made:
        made.wait_ready()
        yield made
        assert made.stop() == 0, made.stderr


def _be_hostile(dl3d: Forwarder, folder: Path, seed: int, rounds: int) -> None:
    rng = Random(seed)
    with VhostDriver(folder / "vm1", 2) as sender, VhostDriver(folder / "vm2", 2) as receiver:
        wait_until(lambda: _is_up(dl3d, "vm1") and _is_up(dl3d, "vm2"), "the ports were up")
        guests = _Guests(dl3d, sender, receiver)
        for turn in range(rounds):
            name = NAMES[2 + turn % 2]
            with HostileDriver(folder / name, rng) as guest:
                for _ in range(8):
                    guest.misbehave(STEPS // 8)
                    guests.exchange()
            if turn % 20 == 19:
                guests.serve(name, folder / name)
        guests.settle()
        for name in HOSTILE:
            guests.serve(name, folder / name)


def hostile_guests_hurt_nobody(dl3d: Forwarder, tmp_path: Path) -> None:
    _be_hostile(dl3d, tmp_path, 1, 24)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def hostile_guests_hurt_nobody_for_long(dl3d: Forwarder, tmp_path: Path, seed: int) -> None:
    _be_hostile(dl3d, tmp_path, seed, ROUNDS)


def a_refused_message_is_named(dl3d: Forwarder, tmp_path: Path) -> None:
    """In the log, where a second one within ten seconds is not, and in what the port shows until its driver is back."""

    def shows(words: str) -> bool:
        vhost = _port(dl3d, "bad").vhost
        assert vhost
        return words in (vhost.remark or "")

    for words, messages in REFUSED.items():
        with VhostDriver(tmp_path / "bad", 2) as guest:
            wait_until(lambda: _is_up(dl3d, "bad"), "the port was up")
            assert not shows("disconnected")
            for request, payload in messages:
                guest.tell(request, payload)
            wait_until(lambda: guest.has_ended, "it was disconnected")
        wait_until(partial(shows, words), "it was named")

    def is_logged() -> bool:
        return any(f"port bad: its peer was disconnected: {words}" in dl3d.stderr for words in REFUSED)

    wait_until(is_logged, "the latest of them was logged")
