"""One attack of a vhost-user peer after another: others lose nothing, it is named, and the next peer is served."""

import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from harness.answers import CORES
from harness.bystanders import Bystanders, Cable, frame_to, is_up, number_in, port_of, remark_of
from harness.vhost import guest_mac
from harness.vhost_driver import (
    BUFFERS_AT,
    GUEST,
    HEADER,
    NEXT,
    RING,
    SET_FEATURES,
    SET_MEM_TABLE,
    SET_VRING_CALL,
    SET_VRING_NUM,
    SLOTS,
    TABLE,
    VERSION,
    WRITE,
    VhostDriver,
)
from harness.wire import Wire, wait_until
from harness.wired import DL3D, Account

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab

FRAMES = 32  # that others exchange beside each attack
WHOLE = 2 * RING  # bytes of the memory of a guest with one queue
END = GUEST + WHOLE
CUT = RING + BUFFERS_AT + 4096  # among the buffers that it sends from, between two pages
OUT, BAD = 2, 3  # places of ports
Attack = Callable[[VhostDriver], None]


def _hand(guest: VhostDriver, address: int, length: int, flags: int = 0, following: int = 0) -> None:
    """Send a frame whose only descriptor is this one."""
    guest.rings[1].describe(0, address, length, flags, following)
    guest.rings[1].expose(0)


def _circle(guest: VhostDriver) -> None:
    guest.rings[1].describe(1, GUEST, 64, NEXT, 0)
    _hand(guest, GUEST, 64, NEXT, 1)


def _share(guest: VhostDriver, *regions: tuple[int, int]) -> None:
    """Share memory in other regions, and wait until it is so."""
    guest.share(*regions)
    guest.enable(1, True)


def _leave_region(guest: VhostDriver) -> None:
    _share(guest, (0, CUT), (CUT + 4096, WHOLE - CUT - 4096))
    _hand(guest, GUEST + CUT - 32, 64)


def _table_in_two_regions(guest: VhostDriver) -> None:
    """Of two descriptors, in front of a region's end and behind it. Tables are not offered."""
    _share(guest, (0, CUT), (CUT, WHOLE - CUT))
    guest.memory[CUT - 16 : CUT + 16] = struct.pack("=QIHHQIHH", GUEST, 64, NEXT, 1, GUEST, 64, 0, 0)
    _hand(guest, GUEST + CUT - 16, 32, TABLE)


# The library goes no further at these.
STANDS = "a queue that the guest sends on stands"
STANDING: dict[str, Attack] = {
    "a chain that is a circle": _circle,
    "a buffer that follows itself": lambda guest: _hand(guest, GUEST, 64, NEXT, 0),
    "a buffer that none follows": lambda guest: _hand(guest, GUEST, 64, NEXT, SLOTS),
    "a slot that the ring does not have": lambda guest: guest.rings[1].expose(SLOTS),
    "a buffer outside of memory": lambda guest: _hand(guest, END, 64),
    "a buffer around the end of all addresses": lambda guest: _hand(guest, 2**64 - 8, 64),
    "a buffer that leaves memory": lambda guest: _hand(guest, END - 32, 64),
    "a buffer that leaves a region": _leave_region,
    "a buffer of 4 GiB": lambda guest: _hand(guest, GUEST, 2**32 - 1),
    "a table of descriptors in two regions": _table_in_two_regions,
}
# It takes these, and there is nothing in them.
EMPTY: dict[str, Attack] = {
    "a buffer without bytes": lambda guest: _hand(guest, GUEST, 0),
    "a frame without bytes": lambda guest: _hand(guest, GUEST, HEADER),
    "an index far ahead": lambda guest: guest.rings[1].jump(3 * SLOTS),
}


def _receive_into(guest: VhostDriver, address: int, length: int, flags: int = 0) -> None:
    """Replace all buffers that the device may write to; each is followed by the first."""
    for slot in range(SLOTS):
        guest.rings[0].describe(slot, address, length, WRITE | flags)


def _receive_nowhere(guest: VhostDriver) -> None:
    for _ in range(SLOTS):
        guest.rings[0].expose(SLOTS)


# Frames do not fit into these.
REFUSING: dict[str, Attack] = {
    "buffers for frames outside of memory": lambda guest: _receive_into(guest, END, 2048),
    "buffers for frames that leave memory": lambda guest: _receive_into(guest, END - 32, 2048),
    "buffers for frames in a circle": lambda guest: _receive_into(guest, GUEST, 1, NEXT),
    "buffers for frames without bytes": lambda guest: _receive_into(guest, GUEST, 0),
    "buffers for frames that the ring does not have": _receive_nowhere,
}


def _send_from_lost_memory(guest: VhostDriver) -> None:
    guest.take_memory_away(CUT)
    _hand(guest, GUEST + CUT, 64)


def _receive_in_lost_memory(guest: VhostDriver) -> None:
    guest.enable(1, False)
    guest.take_memory_away(BUFFERS_AT)


LOST = "its peer has taken away memory that it had shared"
LOSING: dict[str, Attack] = {
    "memory that is taken away": VhostDriver.take_memory_away,
    "a frame in memory that is taken away": _send_from_lost_memory,
    "buffers for frames in memory that is taken away": _receive_in_lost_memory,
}


def _give_events(guest: VhostDriver, n: int) -> None:
    event = os.eventfd(0, os.EFD_NONBLOCK)
    guest.tell(SET_VRING_CALL, bytes(8), files=[event] * n)
    os.close(event)


def _share_nine(guest: VhostDriver) -> None:
    rows = b"".join(struct.pack("=QQQQ", GUEST + 4096 * i, 4096, 4096 * i, 4096 * i) for i in range(8))
    guest.tell(SET_MEM_TABLE, struct.pack("=II", 8, 0) + rows, files=[guest.file] * 9)


LENGTH, ONE_FILE = "a message does not have its length", "a ring has more or fewer than one file for its events"
MESSAGES: dict[str, tuple[str, Attack]] = {
    "a message that is too short": (LENGTH, lambda guest: guest.tell(SET_VRING_NUM, b"\0")),
    "a message that is too long": (LENGTH, lambda guest: guest.tell(SET_VRING_NUM, bytes(16))),
    "a message that no one could read": (LENGTH, lambda guest: guest.tell(SET_FEATURES, bytes(4096))),
    "the beginning of a message": (
        "it has sent a message without its end",
        lambda guest: guest.send(struct.pack("=III", SET_VRING_NUM, VERSION, 8)),
    ),
    "a table without its rows": (
        "the table of its memory is too short",
        lambda guest: guest.tell(SET_MEM_TABLE, struct.pack("=II", 1, 0), files=[guest.file]),
    ),
    "a file that nobody expects": (
        "it has sent files with a message that has none",
        lambda guest: guest.tell(SET_FEATURES, struct.pack("=Q", guest.features), files=[guest.file]),
    ),
    "no file for events": (ONE_FILE, lambda guest: _give_events(guest, 0)),
    "two files for events": (ONE_FILE, lambda guest: _give_events(guest, 2)),
    "as many files as Linux takes": ("more than 8 files with a message", lambda guest: _give_events(guest, 253)),
    "one file too many": ("more than 8 files with a message", _share_nine),
    "memory that is longer than its file": (
        "a file of its memory is too short",
        lambda guest: guest.share((0, WHOLE + 4096)),
    ),
    "memory without a ring": ("a ring in use is not in its new memory", lambda guest: guest.share((0, RING))),
}
NAMES = ("vm1", "vm2", "out", "bad", "silent", *(f"stands{i}" for i in range(len(STANDING))))


def _text(folder: Path) -> str:
    ports: list[dict[str, object]] = [
        {
            "name": name,
            "addresses": [f"10.0.{i + 1}.1/24"],
            "vhost": {"socket": str(folder / name), "mode": "server", "queues": 1},
        }
        for i, name in enumerate(NAMES)
    ]
    del ports[OUT]["vhost"]
    ports[OUT]["device"] = "net_af_packet0,iface=out,framecnt=4096"
    whole = {
        "ports": ports,
        "workers": [{"core": CORES[0]}],
        "neighbours": [f"10.0.{i + 1}.2 lladdr {guest_mac(i)} dev {name}" for i, name in enumerate(NAMES)],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return yaml.safe_dump(whole, sort_keys=False)


class _Host:
    """dl3d between guests and a cable; each attack is made beside frames of the others."""

    def __init__(self, dl3d: Forwarder, folder: Path, others: Bystanders) -> None:
        self.dl3d, self.folder, self.others = dl3d, folder, others

    def attack(self, what: str, attack: Attack, name: str = "bad") -> VhostDriver:
        """The guest at a port makes an attack. Close it."""
        guest = VhostDriver(self.folder / name, 1)
        wait_until(lambda: is_up(self.dl3d, name), f"the port was up before {what}")
        attack(guest)
        self.others.exchange_more(FRAMES, what)
        return guest

    def says(self, words: str, what: str, name: str = "bad") -> None:
        """Wait until dl3d says this about the port's peer."""
        wait_until(lambda: words in remark_of(self.dl3d, name), f"{what} was named")

    def serve(self, name: str = "bad") -> None:
        """The next guest at a port that an attack came from."""
        with VhostDriver(self.folder / name, 1) as guest:
            self.others.serve(guest, name, NAMES.index(name))

    def refused(self) -> int:
        """Frames that guests had no buffers for."""
        return Account.of(self.dl3d.call("drops")).drops.get("tx_refused", 0)

    def n_files(self) -> int:
        """Descriptors that dl3d has open."""
        return sum(1 for _ in Path(f"/proc/{self.dl3d.call('status')['pid']}/fd").iterdir())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Host]:
    folder = tmp_path_factory.mktemp("vhost")
    with Lab() as lab, contextlib.ExitStack() as ends:
        near, far = (lab.namespace(label, silent=True) for label in ("dl3d", "hosts"))
        lab.cable(End(near, "out", "02:00:00:00:00:03"), End(far, "out", guest_mac(OUT)))
        cable = Cable(ends.enter_context(contextlib.closing(Wire(End(far, "out", guest_mac(OUT))))), OUT)
        dl3d = ends.enter_context(Forwarder(DL3D, _text(folder), near))
        dl3d.wait_ready()
        guests = [ends.enter_context(VhostDriver(folder / name, 1)) for name in NAMES[:2]]
        wait_until(lambda: all(is_up(dl3d, name) for name in NAMES[:3]), "the ports were up")
        mac = port_of(dl3d, "vm1").mac
        noise = [frame_to(mac, 0, BAD, 0, size) for size in (60, 1400)]
        yield _Host(dl3d, folder, Bystanders(dl3d, guests[0], guests[1], noise, cable))
        assert dl3d.stop() == 0, dl3d.stderr


@pytest.fixture
def host(running: _Host) -> Iterator[_Host]:
    """When a test ends nothing has been lost, and dl3d has no more files open than before."""
    files = running.n_files()
    yield running
    running.others.settle()
    wait_until(lambda: running.n_files() <= files, "no descriptor was left behind")


@pytest.mark.long  # takes seconds to be sure
def a_ring_that_cannot_be_followed_is_named(host: _Host) -> None:
    """As is a peer that negotiates nothing; after three seconds."""
    with contextlib.ExitStack() as ends:
        silent = ends.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
        silent.connect(str(host.folder / "silent"))
        for i, (what, attack) in enumerate(STANDING.items()):
            guest = ends.enter_context(host.attack(what, attack, f"stands{i}"))
            assert guest.rings[1].used == 0, what
        for i, what in enumerate(STANDING):
            host.says(STANDS, what, f"stands{i}")
        assert f"port stands0: {STANDS}" in host.dl3d.stderr
        host.says("its peer is connected, but has set up no queue", "a silent peer", "silent")
        assert not host.others.receiver.has_ended
        assert remark_of(host.dl3d, "vm1") == ""
    for name in NAMES[BAD:]:
        host.serve(name)


def frames_without_bytes_are_taken_and_dropped(host: _Host) -> None:
    """A ring goes on after them."""
    for what, attack in EMPTY.items():
        with host.attack(what, attack) as guest:
            wait_until(partial(getattr, guest.rings[1], "is_idle"), f"dl3d had taken {what}")
            host.others.serve(guest, "bad", BAD)


def frames_that_a_guest_has_no_room_for_are_refused(host: _Host) -> None:
    for what, attack in REFUSING.items():
        before = host.refused()

        def is_refused(before: int = before, what: str = what) -> bool:
            host.others.exchange_more(FRAMES, what)
            return host.refused() > before

        with host.attack(what, attack):
            wait_until(is_refused, f"frames were refused for {what}")
    host.serve()


def memory_that_a_peer_takes_away_is_named(host: _Host) -> None:
    """Whoever reads or writes it then is not hit."""
    for what, attack in LOSING.items():
        with host.attack(what, attack) as guest:

            def has_ended(guest: VhostDriver = guest, what: str = what) -> bool:
                host.others.exchange_more(FRAMES, what)
                return guest.has_ended

            wait_until(has_ended, f"it was disconnected for {what}")
            host.says(LOST, what)
    host.serve()


@pytest.mark.parametrize("what", MESSAGES)
def a_message_that_breaks_a_rule_is_named(host: _Host, what: str) -> None:
    words, attack = MESSAGES[what]
    with host.attack(what, attack) as guest:
        wait_until(partial(getattr, guest, "has_ended"), f"it was disconnected for {what}")
        host.says(words, what)


def a_buffer_in_two_regions_is_one_frame(host: _Host) -> None:
    """They need not follow each other where dl3d has mapped them."""
    frame = frame_to(port_of(host.dl3d, "bad").mac, BAD, 1, 26)
    into, found = host.others.receiver.rings[0], list[bytes]()

    def has_arrived(n: int) -> bool:
        found.extend(into.take())
        return len(found) == n

    with VhostDriver(host.folder / "bad", 1) as guest:
        wait_until(lambda: is_up(host.dl3d, "bad"), "the port was up")
        host.others.settle()
        _share(guest, (0, CUT), (CUT, WHOLE - CUT))
        for n, behind in enumerate((1, HEADER, HEADER + 40), start=1):
            at = CUT - behind
            guest.memory[at : at + HEADER + len(frame)] = bytes(HEADER) + frame
            _hand(guest, GUEST + at, HEADER + len(frame))
            wait_until(partial(has_arrived, n), f"frame {n} had arrived")
        assert [number_in(one) for one in found] == [26] * 3
