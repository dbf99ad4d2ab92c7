"""Guests at vhost-user ports that write anything to their rings and sockets: the others lose nothing."""

import itertools
import struct
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
import yaml
from harness.answers import CORES
from harness.bystanders import Bystanders, frame_to, is_up, port_of, remark_of
from harness.vhost import guest_mac
from harness.vhost_driver import MULTIQUEUE, SET_FEATURES, SET_VRING_KICK, SET_VRING_NUM, SLOTS, USUAL, VhostDriver
from harness.vhost_hostile import GET_VRING_BASE, RESET_OWNER, SET_LOG_BASE, HostileDriver
from harness.wire import wait_until
from harness.wired import DL3D

from dl3.lab.forwarder import Forwarder

NAMES = ("vm1", "vm2", "bad", "jumbo")
HOSTILE = {"bad": 2, "jumbo": 3}  # at these places
STEPS, ROUNDS = 40, 500
LASTS_S = 600.0
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


@pytest.fixture
def dl3d(tmp_path: Path) -> Iterator[Forwarder]:
    with Forwarder(DL3D, _text(tmp_path)) as made:
        made.wait_ready()
        yield made
        assert made.stop() == 0, made.stderr


def _be_hostile(dl3d: Forwarder, folder: Path, seed: int, turns: Iterable[int]) -> None:
    rng = Random(seed)
    with VhostDriver(folder / "vm1", 2) as sender, VhostDriver(folder / "vm2", 2) as receiver:
        wait_until(lambda: is_up(dl3d, "vm1") and is_up(dl3d, "vm2"), "the ports were up")
        mac = port_of(dl3d, "vm1").mac
        noise = [frame_to(mac, 0, to, 0, size) for to in HOSTILE.values() for size in (60, 1400)]
        guests = Bystanders(dl3d, sender, receiver, noise)
        for turn in turns:
            name = NAMES[2 + turn % 2]
            with HostileDriver(folder / name, rng) as guest:
                for _ in range(8):
                    guest.misbehave(STEPS // 8)
                    guests.exchange()
            if turn % 20 == 19:
                _serve(guests, name, folder)
        guests.settle()
        for name in HOSTILE:
            _serve(guests, name, folder)


def _serve(guests: Bystanders, name: str, folder: Path) -> None:
    with VhostDriver(folder / name, 1) as fresh:
        guests.serve(fresh, name, HOSTILE[name])


def hostile_guests_hurt_nobody(dl3d: Forwarder, tmp_path: Path) -> None:
    _be_hostile(dl3d, tmp_path, 1, range(24))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def hostile_guests_hurt_nobody_for_long(dl3d: Forwarder, tmp_path: Path, seed: int) -> None:
    _be_hostile(dl3d, tmp_path, seed, range(ROUNDS))


@pytest.mark.long
def hostile_guests_hurt_nobody_for_ten_minutes(dl3d: Forwarder, tmp_path: Path) -> None:
    end = time.monotonic() + LASTS_S
    _be_hostile(dl3d, tmp_path, 12, itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()))


def a_refused_message_is_named(dl3d: Forwarder, tmp_path: Path) -> None:
    """In the log, where a second one within ten seconds is not, and in what the port shows until its driver is back."""

    def shows(words: str) -> bool:
        return words in remark_of(dl3d, "bad")

    for words, messages in REFUSED.items():
        with VhostDriver(tmp_path / "bad", 2) as guest:
            wait_until(lambda: is_up(dl3d, "bad"), "the port was up")
            assert not shows("disconnected")
            for request, payload in messages:
                guest.tell(request, payload)
            wait_until(lambda: guest.has_ended, "it was disconnected")
        wait_until(partial(shows, words), "it was named")

    def is_logged() -> bool:
        return any(f"port bad: its peer was disconnected: {words}" in dl3d.stderr for words in REFUSED)

    wait_until(is_logged, "the latest of them was logged")
