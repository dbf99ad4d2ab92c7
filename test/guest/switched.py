"""Linux's bridge that filters by VLAN, for which dl3d forwards, beside the same bridge of the kernel alone. In a guest."""

import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from harness.paired import BROADCAST, ETHERTYPE, HOSTS, MULTICAST, NAMES, UNKNOWN, Both
from harness.wire import Wire, wait_until
from harness.wired import Account, Port, WiredForwarder

from dl3.lab.command import run
from dl3.lab.namespace import End, Namespace
from dl3.model.fault import Fault

# Of the socket readers here, only libpcap restores a tag with its original EtherType.
DEVICE = "net_pcap{index},iface={name}"
N_HOSTS, CHANGES = 8, 40
VIDS = (1, 10, 20, 4094)


def _tag(vid: int, protocol: int = 0x8100, priority: int = 0) -> bytes:
    return struct.pack("!HH", protocol, priority << 12 | vid)


# What a host may send: untagged, with a priority only, in VLANs, with tags that are not the bridge's, with two.
FORMS = (b"", _tag(0), *(_tag(vid) for vid in VIDS), _tag(10, 0x88A8), _tag(0, 0x88A8), _tag(10) + _tag(20))


def _frame(dst: bytes, src: bytes, tags: bytes, number: int) -> bytes:
    """A frame that carries its number."""
    return dst + src + tags + ETHERTYPE + struct.pack("!I", number) + bytes(42)


def _seen(wire: Wire) -> list[tuple[int, str]]:
    """The numbers of our frames that have arrived, with their tags."""
    found = []
    for one in wire.drain():
        if (at := one.find(ETHERTYPE, 12)) > 0:
            found.append((int(struct.unpack("!I", one[at + 2 : at + 6])[0]), one[12:at].hex()))
    return found


def _bridge(side: Namespace, *words: str) -> str:
    """Run bridge(8) there."""
    return run(["bridge", "-n", side.name, *words])


@dataclass
class Switched(Both):
    """Two bridges that filter by VLAN."""

    filters: bool = True
    done: list[str] = field(default_factory=list)

    def send(self, port: str, frames: list[bytes]) -> None:
        """Send frames on a port of both; the same ones must come out at the same ports, each once, with equal tags."""
        received = self.wired.account().received
        for one in frames:
            self.wired.wires[port].send(one)
            self.control[port].send(one)
        ours: dict[str, list[tuple[int, str]]] = {name: [] for name in NAMES}
        theirs: dict[str, list[tuple[int, str]]] = {name: [] for name in NAMES}

        def is_same() -> bool:
            for name in NAMES:
                ours[name] = sorted(ours[name] + _seen(self.wired.wires[name]))
                theirs[name] = sorted(theirs[name] + _seen(self.control[name]))
            account = Account.of(self.wired.dl3d.call("drops"))
            return account.received >= received + len(frames) and account.is_closed and ours == theirs

        try:
            wait_until(is_same, "the same frames had come out of both", 30)
        except AssertionError as error:
            what = f"dl3d {ours}, the kernel {theirs}; sent on {port}: {[one.hex() for one in frames]}"
            raise AssertionError(f"{what}; changes: {self.done}; hosts: {self.behind}") from error

    def on_both(self, *words: str) -> None:
        """Run a command on both sides, which accept or refuse it alike."""
        self.done.append(" ".join(words))
        results = []
        for side in self.sides:
            try:
                run([words[0], "-n", side.name, *words[1:]])
                results.append(True)
            except Fault:
                results.append(False)
        assert results[0] == results[1], f"{words} on both sides: {results}"

    def known(self, side: Namespace) -> set[tuple[str, int, str]]:
        """Where a bridge of Linux knows our hosts: those entries that it uses."""
        entries = json.loads(_bridge(side, "-j", "fdb", "show", "br", "br0"))
        hosts = {host.hex(":") for host in HOSTS}
        return {
            (one["mac"], int(one.get("vlan", 0)), one["ifname"])
            for one in entries
            if one["mac"] in hosts and ("vlan" in one) == self.filters
        }

    def greet_all(self) -> None:
        """Have all hosts send in each form, until both bridges know the same; workers, too."""
        for port in NAMES:
            here = [host for host, at in self.behind.items() if at == port]
            frames = []
            for host in here:
                for form in FORMS:
                    self.number += 1
                    frames.append(_frame(BROADCAST, host, form, self.number))
            self.send(port, frames)
        wait_until(lambda: self.known(self.sides[0]) == self.known(self.sides[1]), f"both knew the same: {self.done}")
        self.followed()

        listed: list[str] = []

        def is_verified() -> bool:
            listed[:] = self.wired.dl3d.call("verify")["listed"]
            return not listed

        try:
            wait_until(is_verified, "workers had what Linux has")
        except AssertionError as error:
            raise AssertionError(f"{listed}; changes: {self.done}") from error


def _make(side: Namespace) -> None:
    """A bridge of all four ports that sends nothing of its own."""
    side.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    words = ("mcast_snooping", "0", "stp_state", "0", "vlan_filtering", "1", "ageing_time", "100000")
    side.ip("link", "add", "name", "br0", "type", "bridge", *words)
    side.ip("link", "set", "dev", "br0", "arp", "off", "up")
    for name in NAMES:
        side.ip("link", "set", "dev", name, "master", "br0")
        side.ip("link", "set", "dev", name, "arp", "off", "up")
    wait_until(lambda: side.ip("-d", "link", "show").count("state forwarding") == len(NAMES), "all ports forwarded")


@pytest.fixture(scope="module")
def switched() -> Iterator[Switched]:
    with WiredForwarder([Port(name, device=DEVICE) for name in (*NAMES, "e")], linux={"keep": True}) as wired:
        kernel = wired.lab.namespace("kernel", silent=True)
        far = wired.lab.namespace("control", silent=True)
        control = {}
        for index, name in enumerate(NAMES):
            end = End(far, name, f"02:00:00:00:03:{index:02x}")
            wired.lab.cable(End(kernel, name, f"02:00:00:00:02:{index:02x}"), end)
            control[name] = Wire(end)
        made = Switched(wired, kernel, control)
        for side in made.sides:
            _make(side)
        wait_until(made.is_served, "workers served all ports")
        yield made
        for wire in control.values():
            wire.close()


def _macs(switched: Switched, host: bytes) -> set[tuple[int | None, str]]:
    """VLANs and ports of a host, as workers know it."""
    rows: list[dict[str, Any]] = switched.wired.dl3d.call("macs", limit=5000)["macs"]
    return {(row["vlan"], row["port"]) for row in rows if row["mac"] == host.hex(":")}


def _is_known(switched: Switched, host: bytes, port: str) -> bool:
    return _macs(switched, host) == {(10, port)}


def _updated_s(switched: Switched, host: bytes) -> dict[int, int]:
    """Seconds since Linux last heard of a host, by VLAN."""
    entries = json.loads(_bridge(switched.sides[0], "-j", "-s", "fdb", "show", "br", "br0"))
    return {int(one.get("vlan", 0)): int(one["updated"]) for one in entries if one["mac"] == host.hex(":")}


def linux_is_told_of_a_host_in_its_vlan_only(switched: Switched) -> None:
    for port in NAMES:
        switched.on_both("bridge", "vlan", "add", "dev", port, "vid", "10-30")
    switched.on_both("ip", "link", "set", "dev", "br0", "type", "bridge", "ageing_time", "4000")
    for host, port in zip(HOSTS, "ab", strict=False):
        switched.number += 1
        switched.send(port, [_frame(BROADCAST, host, _tag(10), switched.number)])
        wait_until(partial(_is_known, switched, host, port), "workers knew it in its VLAN")
    wait_until(lambda: _updated_s(switched, HOSTS[0]).get(10, 0) >= 2, "Linux had not heard of it for 2 s")
    before = switched.wired.account()
    switched.send("a", [_frame(HOSTS[1], HOSTS[0], _tag(10, priority=11), number) for number in range(1, 31)])
    after = switched.wired.account().since(before)
    assert (after.received, after.sent, after.punted) == (30, 30, 0)
    wait_until(lambda: 0 <= _updated_s(switched, HOSTS[0]).get(10, -1) < 2, "Linux was told of it")
    assert set(_updated_s(switched, HOSTS[0])) == {10}
    assert _macs(switched, HOSTS[0]) == {(10, "a")}
    switched.on_both("ip", "link", "set", "dev", "br0", "type", "bridge", "ageing_time", "100000")
    for port in NAMES:
        switched.on_both("bridge", "vlan", "del", "dev", port, "vid", "10-30")


def a_vlan_that_does_not_forward_is_left_to_linux_and_named(switched: Switched) -> None:
    def named() -> list[str]:
        return [row["where"] for row in switched.unsupported() if row["what"] == "VLANs of a port left to Linux"]

    switched.on_both("bridge", "vlan", "set", "dev", "a", "vid", "1", "state", "blocking")
    wait_until(lambda: named() == ["a in br0"], "it was named")
    switched.on_both("bridge", "vlan", "set", "dev", "a", "vid", "1", "state", "forwarding")
    wait_until(lambda: not named(), "it was named no longer")


def _set_filtering(switched: Switched, filters: bool) -> None:
    """Set it and forget all hosts: without filtering, Linux enters what it is told of a host in the port's VLAN, too."""
    switched.filters = filters
    for words in (("vlan_filtering", str(int(filters))), ("fdb_flush",)):
        switched.on_both("ip", "link", "set", "dev", "br0", "type", "bridge", *words)


def _change_vlan(switched: Switched, dice: random.Random) -> None:
    """Add or change a VLAN of a port, or some, or take it away."""
    vid = str(dice.choice(VIDS)) if dice.random() < 0.8 else "5-25"
    port, words = dice.choice(NAMES), []
    if dice.random() < 0.25:
        switched.on_both("bridge", "vlan", "del", "dev", port, "vid", vid)
        return
    if dice.random() < 0.4 and "-" not in vid:
        words.append("pvid")
    if dice.random() < 0.5:
        words.append("untagged")
    switched.on_both("bridge", "vlan", "add", "dev", port, "vid", vid, *words)


def _change_state(switched: Switched, dice: random.Random) -> None:
    state = dice.choice(("forwarding", "forwarding", "learning", "blocking"))
    switched.on_both("bridge", "vlan", "set", "dev", dice.choice(NAMES), "vid", str(dice.choice(VIDS)), "state", state)


def _change_bridge(switched: Switched, dice: random.Random) -> None:
    """Its filtering, its tags, or the PVID of all ports."""
    what = dice.randrange(3)
    if what == 0:
        _set_filtering(switched, not switched.filters)
    elif what == 1:
        protocol = dice.choice(("802.1Q", "802.1ad"))
        switched.on_both("ip", "link", "set", "dev", "br0", "type", "bridge", "vlan_protocol", protocol)
    else:
        _set_filtering(switched, filters=False)
        pvid = str(dice.choice((0, *VIDS)))
        switched.on_both("ip", "link", "set", "dev", "br0", "type", "bridge", "vlan_default_pvid", pvid)
        _set_filtering(switched, filters=True)


def _forwards(side: Namespace, port: str) -> bool:
    return side.ip("-d", "link", "show", port).count("state forwarding") == 1


def _move(switched: Switched, dice: random.Random) -> None:
    """Hosts to other ports, or a port out of the bridge and back."""
    if dice.random() < 0.7:
        for host in dice.sample(HOSTS[:N_HOSTS], 3):
            switched.behind[host] = dice.choice(NAMES)
        return
    port = dice.choice(NAMES)
    for words in (("nomaster",), ("master", "br0")):
        switched.on_both("ip", "link", "set", "dev", port, *words)
    for side in switched.sides:
        wait_until(partial(_forwards, side, port), "it forwarded")


KINDS: list[Callable[[Switched, random.Random], None]] = [_change_vlan, _change_state, _change_bridge, _move]


def _burst(switched: Switched, dice: random.Random, port: str, targets: list[bytes]) -> list[bytes]:
    """Frames of the hosts behind a port, all to hosts or all to groups: they may overtake each other."""
    here = [host for host, at in switched.behind.items() if at == port]
    frames = []
    for _ in range(dice.randrange(10, 40) if here else 0):
        switched.number += 1
        tags = dice.choice(FORMS)
        if tags:
            tags = tags[:2] + bytes([tags[2] | dice.randrange(16) << 4]) + tags[3:]
        frames.append(_frame(dice.choice(targets), dice.choice(here), tags, switched.number))
    return frames


def random_frames_come_out_with_the_tags_of_the_kernel(switched: Switched) -> None:
    dice = random.Random(1)
    switched.behind = {host: NAMES[index % len(NAMES)] for index, host in enumerate(HOSTS[:N_HOSTS])}
    before = switched.wired.account()
    for step in range(CHANGES):
        if step:
            dice.choices(KINDS, (6, 1, 2, 2))[0](switched, dice)
        switched.greet_all()
        for port in NAMES:
            switched.send(port, _burst(switched, dice, port, [*HOSTS[:N_HOSTS], UNKNOWN]))
            switched.send(port, _burst(switched, dice, port, [BROADCAST, MULTICAST]))
    account = switched.wired.account().since(before)
    by_workers = account.sent - account.injected
    assert by_workers > CHANGES, "workers forwarded some, Linux the others"
    assert account.copied > CHANGES, "workers flooded some, Linux the others"
    print(f"{account.received} frames, {by_workers} forwarded by workers, {CHANGES} changes")
