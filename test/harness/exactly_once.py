"""Frames that come out of a bridge exactly once at each port that a model of the bridge names, while it is changed."""

import random
import struct
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.wire import wait_until
from harness.wired import Account, WiredForwarder

NAMES = tuple(f"p{number}" for number in range(8))
BROADCAST = bytes([255] * 6)
MULTICAST = bytes.fromhex("01005e000001")
ETHERTYPE = bytes.fromhex("88b5")
HOSTS = [bytes.fromhex(f"0200000005{number:02x}") for number in range(24)]
SILENT = [bytes.fromhex(f"0200000006{number:02x}") for number in range(8)]  # only static addresses
UNKNOWN = bytes.fromhex("0200000007ff")
ON = ("state", "flood", "mcast_flood", "bcast_flood", "learning")
OFF = ("isolated", "hairpin", "locked", "neigh_suppress")
BURST = 32  # frames
UNDER_WAY = 256  # frames, that the rings of all ports hold
REMEMBERED = 100_000  # frames: one that comes even later fails the test, too


@dataclass
class Model:
    """Linux's bridge without VLANs: the flags of its ports, and where each address is."""

    flags: dict[tuple[str, str], bool] = field(
        default_factory=lambda: {(port, word): word in ON for port in NAMES for word in ON + OFF}
    )
    places: dict[bytes, str] = field(default_factory=dict)

    def copy(self) -> "Model":
        """Another one that is equal."""
        return Model(dict(self.flags), dict(self.places))

    def teaches(self, port: str) -> bool:
        """Whether the bridge learns from frames that come in there."""
        return self.flags[port, "state"] and self.flags[port, "learning"] and not self.flags[port, "locked"]

    def outputs(self, port: str, dst: bytes) -> frozenset[str]:
        """Where a frame must come out."""
        flags = self.flags
        if not flags[port, "state"]:
            return frozenset()
        if dst in self.places:
            targets: Collection[str] = (self.places[dst],)
        else:
            word = "bcast_flood" if dst == BROADCAST else "mcast_flood" if dst[0] & 1 else "flood"
            targets = [name for name in NAMES if flags[name, word]]
        return frozenset(
            name
            for name in targets
            if flags[name, "state"]
            and (name != port or flags[name, "hairpin"])
            and not (flags[name, "isolated"] and flags[port, "isolated"])
        )


@dataclass
class Sent:
    """A frame, the ports at which it must and may come out, and those at which it has."""

    frame: bytes
    must: frozenset[str]
    may: frozenset[str]
    seen: set[str] = field(default_factory=set)


@dataclass
class Change:
    """The bridge before and after a change; `is_flooding_loose`: floods may be lost meanwhile."""

    before: Model
    after: Model
    is_flooding_loose: bool
    movers: Collection[bytes] = ()  # hosts that send from their new places until these are known


class Traffic:
    """Sends random frames on all ports of a bridge, and judges each frame that comes out."""

    def __init__(self, wired: WiredForwarder, dice: random.Random) -> None:
        self.wired, self.dice = wired, dice
        self.model = Model()
        self.change: Change | None = None
        self.n_sent = self.n_arrived = self.n_lost = 0
        self._sent: dict[int, Sent] = {}
        self._missing: set[int] = set()
        self._unsure = 0  # frames since it was certain that all had been received

    def _judgement(self, port: str, dst: bytes) -> tuple[frozenset[str], frozenset[str]]:
        """Where a frame must come out, and where it may."""
        change = self.change
        if not change:
            both = self.model.outputs(port, dst)
            return both, both
        old, new = change.before.outputs(port, dst), change.after.outputs(port, dst)
        is_flood = dst not in change.before.places or dst not in change.after.places
        is_loose = old != new or (is_flood and change.is_flooding_loose)
        return frozenset() if is_loose else old, old | new

    def _send(self, port: str, src: bytes, dst: bytes) -> None:
        """Send one frame."""
        self.n_sent += 1
        size = self.dice.choice((60, 60, 60, 300, 1514))
        frame = dst + src + ETHERTYPE + struct.pack("!I", self.n_sent) + bytes(size - 18)
        must, may = self._judgement(port, dst)
        self._sent[self.n_sent] = Sent(frame, must, may)
        if must:
            self._missing.add(self.n_sent)
        else:
            self._unsure += 1
        self.wired.wires[port].send(frame)

    def _burst(self) -> None:
        """Some frames of the hosts behind a port."""
        dice, change = self.dice, self.change
        movers: dict[bytes, str] = {}
        if change:
            movers = {host: change.after.places[host] for host in change.movers}
        for host, port in movers.items():
            self._send(port, host, BROADCAST)
        port = dice.choice(NAMES)
        here = [host for host in HOSTS if self.model.places.get(host) == port and host not in movers]
        for _ in range(dice.randrange(1, BURST) if here else 0):
            dst = dice.choice((*HOSTS, *SILENT, UNKNOWN, BROADCAST, BROADCAST, MULTICAST, MULTICAST))
            self._send(port, dice.choice(here), dst)

    def _take(self) -> None:
        """Judge what has come out."""
        for name, wire in self.wired.wires.items():
            for frame in wire.drain():
                self.n_arrived += 1
                if frame[12:14] != ETHERTYPE:
                    continue  # Linux greets each new interface
                number = int(struct.unpack("!I", frame[14:18])[0])
                sent = self._sent.get(number)
                if not sent or frame != sent.frame or name in sent.seen or name not in sent.may:
                    raise AssertionError(f"frame {number} came out at {name}: {frame[:18].hex()}; it was {sent}")
                sent.seen.add(name)
                if number in self._missing and sent.seen >= sent.must:
                    self._missing.remove(number)
        while len(self._sent) > REMEMBERED:
            number = next(iter(self._sent))
            if number in self._missing:
                break
            del self._sent[number]

    def _wait(self, is_done: Callable[[], bool], what: str) -> None:
        """Take frames until something holds."""

        def is_true() -> bool:
            self._take()
            return is_done()

        try:
            wait_until(is_true, what)
        except AssertionError as error:
            late = [self._sent[number] for number in sorted(self._missing)[:5]]
            account = Account.of(self.wired.dl3d.call("drops"))
            raise AssertionError(
                f"{error}; {len(self._missing)} frames are missing, such as {late}; {account}"
            ) from error

    def _account(self) -> Account:
        return self.wired.account()

    def step(self) -> None:
        """Send a burst, with at most so many frames under way as the rings hold."""
        self._burst()
        self._take()
        if len(self._missing) > UNDER_WAY:
            self._wait(lambda: len(self._missing) < UNDER_WAY // 2, "most frames had come out")
        if self._unsure > UNDER_WAY:
            self._unsure = 0
            self._wait(lambda: self._account().received >= self.n_sent, "all frames had been received")

    def settle(self) -> Account:
        """Wait until all frames have come out, and dl3d has counted exactly what went in and came out here."""
        found: list[Account] = []

        def is_settled() -> bool:
            found[:] = [self._account()]
            account = found[0]
            counts = account.received == self.n_sent and account.sent == self.n_arrived
            return not self._missing and account.is_closed and counts

        self._wait(is_settled, f"{self.n_sent} frames were accounted for")
        self._unsure = 0
        return found[0]

    @contextmanager
    def changing(self, change: Change) -> Iterator[None]:
        """Within, the bridge is between two states, in a thread of its own; traffic goes on meanwhile."""
        self.settle()
        first = self.n_sent
        self.change = change
        yield
        self.settle()
        for number in range(first + 1, self.n_sent + 1):
            sent = self._sent.get(number)
            self.n_lost += bool(sent and not sent.seen and sent.may)
        self.change, self.model = None, change.after

    def run_beside(self, work: Callable[[], None]) -> None:
        """Send while a thread works; its error is raised here."""
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while thread.is_alive():
            self.step()
        thread.join()
        if errors:
            raise errors[0]
