"""Guests at vhost-user ports that are led step by step: queues that change under load, memory that vanishes."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from harness.answers import CORES
from harness.vhost import NAMES, guest_mac
from harness.vhost_driver import SET_VRING_CALL, SET_VRING_ERR, SET_VRING_KICK, SLOTS, VhostDriver
from harness.wire import wait_until
from harness.wired import DL3D, Account
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from dl3.control.replies import Ports
from dl3.lab.forwarder import Forwarder

QUEUES = 4
FRAMES = 300  # in each state
BURST = 16
# As a guest's "ethtool -L" does it, and with queues that no worker has the number of.
STATES = ({0}, {0, 1}, {0, 1, 2, 3}, {0}, {3}, {1, 2}, {0, 1})


def _text(folder: Path) -> str:
    ports = [
        {
            "name": name,
            "addresses": [f"10.0.{i + 1}.1/24"],
            "vhost": {"socket": str(folder / name), "mode": "server", "queues": QUEUES},
        }
        for i, name in enumerate(NAMES)
    ]
    # Each worker has two of the sender's queues.
    queues = [[f"{name}/{queue}" for name in NAMES for queue in (i, i + 2)] for i in range(2)]
    whole = {
        "ports": ports,
        "workers": [{"core": core, "queues": own} for core, own in zip(CORES, queues, strict=False)],
        "neighbours": [f"10.0.2.2 lladdr {guest_mac(1)} dev vm2"],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return yaml.safe_dump(whole, sort_keys=False)


@dataclass(frozen=True)
class Host:
    """dl3d, and where the sockets of its ports are."""

    dl3d: Forwarder
    folder: Path


@pytest.fixture(scope="module")
def running() -> Iterator[Host]:
    """One for all tests: whatever a guest does, the next one finds its port as it was."""
    with tempfile.TemporaryDirectory(prefix="vhost-") as name:
        folder = Path(name)
        with Forwarder(DL3D, _text(folder)) as dl3d:
            dl3d.wait_ready()
            yield Host(dl3d, folder)
            assert dl3d.stop() == 0, dl3d.stderr


@pytest.fixture
def host(running: Host) -> Iterator[Host]:
    """Its guests have left when a test ends."""
    yield running
    wait_until(lambda: not any(_port(running.dl3d, name)[1] for name in NAMES), "the guests had left")


class _Guests:
    """A guest sends on all its queues, the other one counts the frames in each of its rings.

    A frame in a ring that was disabled before is an error.
    """

    def __init__(self, dl3d: Forwarder, sender: VhostDriver, receiver: VhostDriver) -> None:
        self.sender, self.receiver, self.enabled = sender, receiver, set(range(QUEUES))
        self._dl3d, self._before = dl3d, _account(dl3d)
        mac = _port(dl3d, "vm1")[0]
        head = Ether(src=guest_mac(0), dst=mac) / IP(src="10.0.1.2", dst="10.0.2.2")
        self._frame = bytes(head / UDP(sport=9, dport=9) / bytes(20))
        self.offered = self.refused = 0
        self.counts: Counter[int] = Counter()
        self._dead: dict[int, int] = {}

    def offer(self) -> None:
        """Send some frames on each queue."""
        for ring in self.sender.rings[1::2]:
            self.offered += sum(ring.offer(self._frame) for _ in range(BURST))

    def change(self, enabled: set[int]) -> None:
        """Enable and disable rings while frames are under way."""
        for queue in sorted(enabled - self.enabled):
            del self._dead[queue]
            self.receiver.enable(2 * queue, True)
        for queue in sorted(self.enabled - enabled):
            self.offer()
            self.receiver.enable(2 * queue, False)
            self._dead[queue] = self.receiver.rings[2 * queue].used
        self.enabled = enabled
        wait_until(self._is_told, "workers sent on the enabled queues")

    def _is_told(self) -> bool:
        """DPDK's library answers before it reports the change; until then workers may choose a disabled queue."""
        return {i for i, sends in enumerate(_sends(self._dl3d, "vm2")) if sends} == self.enabled

    def poll(self) -> int:
        """Take what has arrived; all that has until now."""
        for queue in range(QUEUES):
            ring = self.receiver.rings[2 * queue]
            self.counts[queue] += len(ring.take())
            if queue in self._dead:
                assert ring.used == self._dead[queue], f"a frame in queue {queue}, which is disabled"
        return self.counts.total()

    def exchange(self, frames: int) -> set[int]:
        """Send until so many frames have arrived; in which rings.

        Never more are under way than one ring holds, so none is refused.
        """
        before = self.counts.copy()

        def are_there() -> bool:
            arrived = self.poll()
            if self.offered - arrived - self.refused <= SLOTS - QUEUES * BURST:
                self.offer()
            return arrived >= before.total() + frames

        wait_until(are_there, "the frames had arrived")
        return set(self.counts - before)

    def settle(self) -> int:
        """Wait until nothing is under way; how many frames were refused until now."""

        def is_settled() -> bool:
            account = self._account()
            return account.is_closed and (self.offered, self.poll()) == (account.received, account.sent)

        wait_until(is_settled, "all frames had arrived or were refused")
        drops = self._account().drops
        assert set(drops) <= {"tx_refused"}, drops
        self.refused = drops.get("tx_refused", 0)
        return self.refused

    def _account(self) -> Account:
        return _account(self._dl3d).since(self._before)


def _port(dl3d: Forwarder, name: str) -> tuple[str, bool]:
    (found,) = [port for port in Ports.model_validate(dl3d.call("ports")).ports if port.name == name]
    return found.mac, found.link_up


def _sends(dl3d: Forwarder, name: str) -> list[bool]:
    """Whether workers send on each of a port's queues."""
    (found,) = [port for port in Ports.model_validate(dl3d.call("ports")).ports if port.name == name]
    assert found.vhost
    return [queue.sends for queue in found.vhost.queues]


def _account(dl3d: Forwarder) -> Account:
    return Account.of(dl3d.call("drops"))


def no_frame_goes_to_a_queue_that_the_guest_has_disabled(host: Host) -> None:
    """What it has not enabled is never written to, and what dl3d counts as sent has arrived."""
    dl3d = host.dl3d
    with VhostDriver(host.folder / "vm1", QUEUES) as sender, VhostDriver(host.folder / "vm2", QUEUES) as guest:
        wait_until(lambda: _port(dl3d, "vm2")[1], "the port was up")
        guests = _Guests(dl3d, sender, guest)
        for state in STATES:
            guests.change(state)
            refused = guests.settle()
            assert guests.exchange(FRAMES) <= state
            assert guests.settle() == refused
        wait_until(lambda: guests.exchange(FRAMES) == {0, 1}, "each worker used its own queue")
        guests.change(set())
        wait_until(lambda: not _port(dl3d, "vm2")[1], "the port was down")


def a_peer_that_takes_its_memory_away_is_disconnected(host: Host) -> None:
    dl3d = host.dl3d
    with VhostDriver(host.folder / "vm1", QUEUES) as guest:
        wait_until(lambda: _port(dl3d, "vm1")[1], "the port was up")
        guest.take_memory_away()
        wait_until(lambda: guest.has_ended, "it was disconnected")
    words = "port vm1: its peer has taken away memory that it had shared, and was disconnected"
    wait_until(lambda: words in dl3d.stderr, "it was named")
    wait_until(lambda: not _port(dl3d, "vm1")[1], "the port was down")
    with VhostDriver(host.folder / "vm1", QUEUES):
        wait_until(lambda: _port(dl3d, "vm1")[1], "the port was up again")


def the_newest_of_several_peers_counts(host: Host) -> None:
    dl3d = host.dl3d
    with VhostDriver(host.folder / "vm1", QUEUES) as former:
        wait_until(lambda: _port(dl3d, "vm1")[1], "the port was up")
        before = _account(dl3d)
        with VhostDriver(host.folder / "vm1", QUEUES) as newer:
            wait_until(lambda: former.has_ended, "the former one was disconnected")
            assert former.rings[1].offer(bytes(60))
            assert newer.rings[1].offer(bytes(60))
            wait_until(lambda: newer.rings[1].used == 1, "its frame was taken")
            wait_until(lambda: _account(dl3d).is_closed, "the account balanced")
            assert _account(dl3d).since(before).received == 1
            assert former.rings[1].used == 0


def a_peer_whose_events_are_no_eventfd_is_disconnected(host: Host) -> None:
    """Other files can make whoever closes them wait."""
    for request in (SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR):
        with VhostDriver(host.folder / "vm1", QUEUES) as guest:
            guest.signal_by_its_memory(request)
            wait_until(lambda: guest.has_ended, "it was disconnected")


def a_peer_whose_messages_come_in_parts_is_disconnected(host: Host) -> None:
    """The others would wait for it again and again."""
    with VhostDriver(host.folder / "vm1", QUEUES) as guest:

        def has_ended() -> bool:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                guest.set_features_late()
            return guest.has_ended

        wait_until(has_ended, "it was disconnected")


def a_guest_with_more_queues_than_its_port_is_named(host: Host) -> None:
    """dl3d says so after three seconds."""
    dl3d = host.dl3d
    with VhostDriver(host.folder / "vm1", QUEUES + 1):
        words = "port vm1: the guest has enabled more queues than the port has"
        wait_until(lambda: words in dl3d.stderr, "it was named")
        assert _port(dl3d, "vm1")[1]
