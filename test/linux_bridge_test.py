"""Linux's bridge, for which dl3d forwards, beside the same bridge of the kernel alone: the same frames come out."""

import os
import random
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness.wire import Wire, wait_until
from harness.wired import Account, Port, WiredForwarder

from dl3.lab.namespace import End, Namespace
from dl3.model.fault import Fault

NAMES = ("a", "b", "c", "d")
BROADCAST = bytes([255] * 6)
MULTICAST = bytes.fromhex("01005e000001")
ETHERTYPE = bytes.fromhex("88b5")
HOSTS = [bytes.fromhex(f"0200000005{number:02x}") for number in range(16)]
UNKNOWN, STRANGER, LINK_LOCAL = (bytes.fromhex(f"02000000{last}") for last in ("07ff", "0400", "0401"))
RESERVED = [bytes.fromhex(f"0180c20000{number:02x}") for number in range(1, 16)]
LEFT_TO_LINUX = "port of a bridge left to Linux"
BURSTS = 40


def _frame(dst: bytes, src: bytes, number: int) -> bytes:
    """A frame that carries its number."""
    return dst + src + ETHERTYPE + struct.pack("!I", number) + bytes(42)


def _numbers(wire: Wire) -> list[int]:
    """The numbers of our frames that have arrived; they may be tagged."""
    found = []
    for one in wire.drain():
        if ETHERTYPE in one[12:18]:
            at = one.index(ETHERTYPE, 12) + 2
            found.append(int(struct.unpack("!I", one[at : at + 4])[0]))
    return found


def _text(mac: bytes) -> str:
    return mac.hex(":")


@dataclass
class Both:
    """Two bridges with four ports each: dl3d forwards for one, the kernel alone for the other."""

    wired: WiredForwarder
    kernel: Namespace
    control: dict[str, Wire]
    number: int = 0
    changes: list[str] = field(default_factory=list)
    mtu: int = 1400  # of the port that is in no bridge
    behind: dict[bytes, str] = field(default_factory=dict)  # where a host sent its latest frame

    @property
    def sides(self) -> tuple[Namespace, Namespace]:
        """Where the bridges are."""
        return self.wired.dl3d.taps, self.kernel

    def change(self, port: str, *words: str) -> None:
        """Set attributes of a port of both bridges, and wait until workers have followed."""
        self.changes.append(" ".join((port, *words)))
        for side in self.sides:
            side.run("bridge", "link", "set", "dev", port, *words)
        self.followed()

    def followed(self) -> None:
        """Wait until workers have what Linux told before: it tells in order."""
        self.mtu = 1400 + (self.mtu + 1) % 2
        self.sides[0].ip("link", "set", "dev", "e", "mtu", str(self.mtu))

        def is_told() -> bool:
            rows = self.wired.dl3d.call("mirror")["interfaces"]
            return any(row["name"] == "e" and row["mtu"] == self.mtu for row in rows)

        wait_until(is_told, "the latest change was told")

    def send(self, port: str, frames: list[bytes]) -> None:
        """Send frames on a port of both; the same ones must come out at the same ports, each once."""
        for one in frames:
            self.wired.wires[port].send(one)
            self.control[port].send(one)
        ours: dict[str, list[int]] = {name: [] for name in NAMES}
        theirs: dict[str, list[int]] = {name: [] for name in NAMES}

        def is_same() -> bool:
            for name in NAMES:
                ours[name] = sorted(ours[name] + _numbers(self.wired.wires[name]))
                theirs[name] = sorted(theirs[name] + _numbers(self.control[name]))
            return ours == theirs and Account.of(self.wired.dl3d.call("drops")).is_closed

        try:
            wait_until(is_same, "the same frames had come out of both", 20)
        except AssertionError as error:
            what = f"dl3d {ours}, the kernel {theirs}; sent on {port}: {[one.hex() for one in frames]}"
            raise AssertionError(f"{what}; changes: {self.changes}; hosts: {self.behind}") from error

    def knows(self, host: bytes) -> str | None:
        """The port behind which workers know a host."""
        rows = self.wired.dl3d.call("macs", limit=5000)["macs"]
        return next((str(row["port"]) for row in rows if row["mac"] == _text(host)), None)

    def introduce(self, host: bytes, port: str) -> None:
        """Have both bridges learn where a host is, and wait until workers know, too."""
        self.number += 1
        self.send(port, [_frame(BROADCAST, host, self.number)])
        self.behind[host] = port
        wait_until(lambda: self.knows(host) == port, f"workers knew {_text(host)}")

    def greet(self, port: str) -> None:
        """Have the hosts behind a port send to all, so that both bridges know what they may know; workers, too."""
        here = [host for host, at in self.behind.items() if at == port]
        self.send(port, [_frame(BROADCAST, host, self.number + 1 + i) for i, host in enumerate(here)])
        self.number += len(here)
        self.followed()

    def is_served(self) -> bool:
        """Whether workers forward for all ports."""
        bridges = self.wired.dl3d.call("bridges")["bridges"]
        return bool(bridges) and {row["port"] for row in bridges[0]["ports"]} == set(NAMES)

    def unsupported(self) -> list[dict[str, Any]]:
        """What workers leave to Linux."""
        return list(self.wired.dl3d.call("unsupported")["unsupported"])


def _bridge(side: Namespace) -> None:
    """A bridge of all four ports; `arp off`, so that it sends nothing of its own."""
    side.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    words = ("type", "bridge", "mcast_snooping", "0", "stp_state", "0")
    side.ip("link", "add", "name", "br0", *words)
    side.ip("link", "set", "dev", "br0", "arp", "off", "up")
    for name in NAMES:
        side.ip("link", "set", "dev", name, "master", "br0")
        side.ip("link", "set", "dev", name, "arp", "off", "up")
    wait_until(lambda: side.ip("-d", "link", "show").count("state forwarding") == len(NAMES), "all ports forwarded")


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with WiredForwarder([Port(name) for name in (*NAMES, "e")], linux={"keep": True}) as wired:
        kernel = wired.lab.namespace("kernel", silent=True)
        far = wired.lab.namespace("control", silent=True)
        control = {}
        for index, name in enumerate(NAMES):
            end = End(far, name, f"02:00:00:00:03:{index:02x}")
            wired.lab.cable(End(kernel, name, f"02:00:00:00:02:{index:02x}"), end)
            control[name] = Wire(end)
        made = Both(wired, kernel, control)
        for side in made.sides:
            _bridge(side)
        wait_until(made.is_served, "workers served all ports")
        yield made
        for wire in control.values():
            wire.close()


def _burst(both: Both, dice: random.Random, port: str, targets: list[bytes]) -> list[bytes]:
    """Some frames of the hosts behind a port, or of an unknown one, all to hosts or all to groups.

    Not both: they are in different classes when they are punted, and may overtake each other.
    """
    here = [host for host, at in both.behind.items() if at == port]
    frames = []
    for _ in range(dice.randrange(1, 20)):
        both.number += 1
        dst = dice.choice(targets)
        # Even a locked port learns from frames to reserved groups, and tagged frames may overtake others.
        src = LINK_LOCAL if dst in RESERVED else dice.choice(here or [STRANGER])
        one = _frame(dst, src, both.number)
        tag = struct.pack("!HH", 0x8100, dice.randrange(1, 4095))
        frames.append(one[:12] + tag + one[12:] if dice.random() < 0.2 else one)
    return frames


OFF = ("isolated", "hairpin", "locked", "neigh_suppress")  # unless changed
ON = ("flood", "mcast_flood", "bcast_flood", "learning", "state")


def _value(word: str, is_on: bool) -> str:
    """In the words of iproute2; of a state, forwarding and blocking."""
    return ("3" if is_on else "4") if word == "state" else "on" if is_on else "off"


TEACHING = ("learning", "locked", "state")


def _send_random_frames(both: Both, n_bursts: int) -> None:
    dice = random.Random(int(os.environ.get("DL3_SEED", "1")))
    now = {(port, word): word in ON for port in NAMES for word in OFF + ON}
    n_served, before = 0, both.wired.account()
    for step in range(n_bursts):
        port, host = dice.choice(NAMES), dice.choice(HOSTS)
        if step % 6 == 5:
            # Back more often than away, so that all ports are served now and then.
            changed = [key for key, is_on in now.items() if is_on != (key[1] in ON)]
            key = dice.choice(changed if changed and dice.random() < 0.6 else list(now))
            now[key] = not now[key]
            both.change(key[0], key[1], _value(key[1], now[key]))
            n_served += both.is_served()
            if key[1] in TEACHING:
                both.greet(key[0])
        if both.behind.get(host) != port:
            both.behind[host] = port
            both.greet(port)
        both.send(port, _burst(both, dice, port, [*HOSTS, UNKNOWN]))
        both.send(port, _burst(both, dice, port, [BROADCAST, MULTICAST, *RESERVED]))
    for (port, word), is_on in now.items():
        if is_on != (word in ON):
            both.change(port, word, _value(word, word in ON))
    account = both.wired.account().since(before)
    assert n_served > 1
    assert account.received > n_bursts
    assert account.sent > account.injected  # workers forwarded some, Linux the others


def random_frames_come_out_where_the_kernel_alone_sends_them(both: Both) -> None:
    _send_random_frames(both, BURSTS)


@pytest.mark.long
def so_they_do_across_many_changes(both: Both) -> None:
    _send_random_frames(both, 10 * BURSTS)


def workers_forward_what_linux_has_learnt(both: Both) -> None:
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    for host, port in zip(HOSTS[:2], "ab", strict=True):
        assert _text(host) in both.sides[0].run("bridge", "fdb", "show", "brport", port)
    before = both.wired.account()
    both.send("a", [_frame(HOSTS[1], HOSTS[0], number) for number in range(1000, 1100)])
    after = both.wired.account().since(before)
    assert (after.received, after.sent, after.punted, after.drops) == (100, 100, 0, {})
    both.introduce(HOSTS[1], "c")  # it moves
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 2000)])


def _updated_s(both: Both, host: bytes) -> int:
    """Seconds since Linux last heard of a host; -1: it has forgotten it."""
    shown = both.sides[0].run("bridge", "-s", "fdb", "show", "br", "br0")
    found = re.search(rf"{_text(host)} dev \w+ used \d+/(\d+) master", shown)
    return int(found[1]) if found else -1


def a_host_whose_frames_workers_forward_does_not_age(both: Both) -> None:
    for side in both.sides:
        side.ip("link", "set", "dev", "br0", "type", "bridge", "ageing_time", "4000")
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    wait_until(lambda: _updated_s(both, HOSTS[0]) >= 2, "Linux had not heard of it for 2 s")
    before = both.wired.account()
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 1)])
    wait_until(lambda: 0 <= _updated_s(both, HOSTS[0]) < 2, "Linux was told of it")
    assert both.wired.account().since(before).punted == 0
    before_s = _updated_s(both, HOSTS[1])
    wait_until(lambda: _updated_s(both, HOSTS[1]) > before_s, "the one that was silent was not told of")
    for side in both.sides:
        side.ip("link", "set", "dev", "br0", "type", "bridge", "ageing_time", "30000")


def what_dl3d_does_not_decide_for_linux_has_no_number(both: Both) -> None:
    for side in both.sides:  # it may have been seen before
        side.ip("link", "set", "dev", "br0", "type", "bridge", "fdb_flush")
    wait_until(lambda: both.knows(HOSTS[2]) is None, "workers had forgotten it")
    both.introduce(HOSTS[2], "c")
    (row,) = (one for one in both.wired.dl3d.call("macs", port="c")["macs"] if one["mac"] == _text(HOSTS[2]))
    assert row["idle_s"] is None
    (bridge,) = both.wired.dl3d.call("bridges")["bridges"]
    assert [bridge[key] for key in ("max_macs", "aged", "held", "evicted", "refused")] == [None] * 4 + [0]
    with pytest.raises(Fault, match="bridge fdb_flush"):
        both.wired.dl3d.call("macs.flush")


def what_workers_do_not_do_is_named_and_left_to_linux(both: Both) -> None:
    both.change("a", "locked", "on")
    wait_until(lambda: not both.is_served(), "workers served it no longer")
    (row,) = (one for one in both.unsupported() if one["what"] == LEFT_TO_LINUX)
    assert row["where"] == "a in br0"
    assert "locked" in row["effect"]
    both.change("a", "locked", "off")
    wait_until(both.is_served, "workers served it again")
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    chain = "add table bridge t; add chain bridge t f { type filter hook forward priority 0; policy drop; }"
    for side in both.sides:
        side.run("nft", chain)
    wait_until(lambda: not both.is_served(), "Linux had the frames that its hook drops")
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 1)])
    for side in both.sides:
        side.run("nft", "delete table bridge t")
    wait_until(both.is_served, "workers served it again")
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 2)])


def workers_have_the_addresses_that_linux_has(both: Both) -> None:
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    reply = both.wired.dl3d.call("verify")
    assert (reply["differences"], reply["listed"]) == (0, [])
    assert reply["macs"] >= 2


def linux_keeps_the_addresses_when_dl3d_is_killed(both: Both) -> None:
    dl3d = both.wired.dl3d
    for side in both.sides:  # longer than a start takes
        side.ip("link", "set", "dev", "br0", "type", "bridge", "ageing_time", "100000")
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    dl3d.kill()
    assert _text(HOSTS[0]) in both.sides[0].run("bridge", "fdb", "show", "brport", "a")
    dl3d.start_again()
    dl3d.wait_ready()
    wait_until(lambda: both.is_served() and both.knows(HOSTS[1]) == "b", "the new dl3d served all ports")
    before = both.wired.account()
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 1)])
    assert both.wired.account().since(before).punted == 0


def a_port_that_leaves_the_bridge_gets_nothing_of_it(both: Both) -> None:
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    for side in both.sides:
        side.ip("link", "set", "dev", "b", "nomaster")
    wait_until(lambda: both.knows(HOSTS[1]) is None, "workers had forgotten it")
    both.send("a", [_frame(HOSTS[1], HOSTS[0], 1), _frame(BROADCAST, HOSTS[0], 2)])
    for side in both.sides:
        side.ip("link", "delete", "dev", "br0")
    wait_until(lambda: not both.wired.dl3d.call("bridges")["bridges"], "there was no bridge")
    assert both.knows(HOSTS[0]) is None
