"""Workers flood for Linux's bridge, and its guard keeps Linux from flooding as well: each frame comes out once."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from harness.paired import BROADCAST, HOSTS, MULTICAST, NAMES, UNKNOWN, Both, frame, numbers, pair, spelled
from harness.wire import Wire, wait_until
from harness.wired import Account

from dl3.lab.namespace import End, Lab

MANY = 50
LEAST = 60  # bytes of a frame, to which it may be padded
ARP = bytes.fromhex("0806 0001 0800 0604 0001 020000000500 0a000502 000000000000 0a000503")
# With a router alert. br_netfilter drops IPv4 whose checksum is wrong, and cuts what follows a packet.
IGMP = bytes.fromhex("0800 46c00020 00000000 01023500 0a000502 e0000016 94040000 1600 0904 e00000fb")
GUARD = "guard against flooding twice"


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with pair({"d": {"storm": {"multicast": 10}}}) as made:
        yield made


def _flooded(both: Both, port: str, dst: bytes, src: bytes = HOSTS[0]) -> Account:
    """Send many frames on both, and return what dl3d has counted."""
    before = both.wired.account()
    both.send(port, [frame(dst, src, both.number + number) for number in range(MANY)])
    both.number += MANY
    return both.wired.account().since(before)


def _guarded(both: Both) -> int:
    return int(both.wired.dl3d.call("bridges")["guarded"])


def _set_bridge(both: Both, *words: str) -> None:
    for side in both.sides:
        side.ip("link", "set", "dev", "br0", *words)
    both.followed()


def workers_flood_and_linux_learns_from_whom(both: Both) -> None:
    for host, dst in zip(HOSTS, (BROADCAST, MULTICAST, UNKNOWN), strict=False):
        account = _flooded(both, "a", dst, host)
        assert (account.received, account.copied, account.sent) == (MANY, 2 * MANY, 3 * MANY)
        assert (account.punted, account.dropped) == (0, 0)
        wait_until(lambda: both.knows(host) == "a", "it was known")  # noqa: B023
        assert spelled(host) in both.sides[0].run("bridge", "fdb", "show", "brport", "a")
    assert _guarded(both) == 0


def a_host_that_moves_is_learnt_where_it_is(both: Both) -> None:
    both.introduce(HOSTS[4], "a")
    both.introduce(HOSTS[4], "b")
    account = _flooded(both, "c", HOSTS[4], HOSTS[5])
    assert account.sent == MANY


@contextlib.contextmanager
def _addressed(both: Both) -> Iterator[None]:
    """The interfaces of both bridges have an address, and somebody looks at what they get."""
    wires = tuple(Wire(End(side, "br0", "")) for side in both.sides)
    for side in both.sides:
        side.ip("address", "add", "10.0.5.1/24", "dev", "br0")
    both.followed()
    both.others["br0"] = (wires[0], wires[1])
    yield
    del both.others["br0"]
    for side, wire in zip(both.sides, wires, strict=True):
        side.ip("address", "flush", "dev", "br0")
        wire.close()
    both.followed()


def the_bridge_itself_gets_each_frame_once(both: Both) -> None:
    with _addressed(both):
        before = _guarded(both)
        for dst in (BROADCAST, MULTICAST):
            account = _flooded(both, "a", dst)
            assert (account.copied, account.sent, account.punted) == (3 * MANY, 3 * MANY, MANY)
        wait_until(lambda: _guarded(both) - before == 6 * MANY, "the guard had kept Linux from flooding")
        _flooded(both, "a", UNKNOWN)
        _set_bridge(both, "promisc", "on")
        account = _flooded(both, "a", UNKNOWN)  # all of it is Linux's
        assert account.punted == MANY
        _set_bridge(both, "promisc", "off")
    account = _flooded(both, "a", BROADCAST)
    assert account.punted == 0


@contextlib.contextmanager
def _further_port(both: Both) -> Iterator[None]:
    """Both bridges have a port that no worker serves."""
    wires = []
    for index, side in enumerate(both.sides):
        far = End(both.wired.lab.namespace(f"v{index}", silent=True), "v", f"02:00:00:00:04:{index:02x}")
        both.wired.lab.cable(End(side, "v", f"02:00:00:00:05:{index:02x}"), far)
        side.ip("link", "set", "dev", "v", "master", "br0")
        wait_until(lambda: "state forwarding" in side.ip("-d", "link", "show", "v"), "it forwarded")  # noqa: B023
        wires.append(Wire(far))
    both.followed()
    both.others["v"] = (wires[0], wires[1])
    yield
    del both.others["v"]
    for side, wire in zip(both.sides, wires, strict=True):
        wire.close()
        side.ip("link", "delete", "dev", "v")
    both.followed()


def a_port_that_workers_do_not_serve_gets_each_frame_once(both: Both) -> None:
    with _further_port(both):
        for dst, host in ((BROADCAST, HOSTS[6]), (MULTICAST, HOSTS[7]), (UNKNOWN, HOSTS[8])):
            _flooded(both, "a", dst, host)
        for dst, host in ((BROADCAST, HOSTS[9]), (MULTICAST, HOSTS[9]), (UNKNOWN, HOSTS[9])):
            _flooded(both, "v", dst, host)
        account = _flooded(both, "a", HOSTS[9])  # behind it
        assert account.punted == MANY
        assert any("do not serve" in row["effect"] for row in both.unsupported())


def what_linux_answers_is_its_own(both: Both) -> None:
    tags = (b"", bytes.fromhex("81000005"))
    frames = sorted(BROADCAST + HOSTS[0] + tag + kind for kind in (ARP, IGMP) for tag in tags)
    whole = [one.ljust(LEAST, b"\0") for one in frames]
    before = both.wired.account()
    for one in frames:
        for wire in (both.wired.wires["a"], both.control["a"]):
            wire.send(one)
    found: dict[str, list[bytes]] = {}

    def is_out() -> bool:
        for side, wires in (("dl3d", both.wired.wires), ("kernel", both.control)):
            for name in NAMES:
                got = [one.ljust(LEAST, b"\0") for one in wires[name].drain()]
                got += found.get(f"{side} {name}", [])
                found[f"{side} {name}"] = sorted(one for one in got if one in whole)
        return all(rows == (whole if where[-1] != "a" else []) for where, rows in found.items())

    try:
        wait_until(is_out, "each had come out once", 20)
    except AssertionError as error:
        raise AssertionError(f"{found}") from error
    account = both.wired.settle(before.received + len(frames)).since(before)
    assert (account.copied, account.punted) == (0, len(frames))


def a_list_that_judges_frames_of_a_port_leaves_floods_to_linux(both: Both) -> None:
    use = {"interface": "b", "direction": "in"}
    both.wired.dl3d.call("acl.change", lists={"l": ["permit"]}, use=[use | {"list": "l"}])
    wait_until(lambda: any("access list judges" in row["effect"] for row in both.unsupported()), "it was Linux's")
    account = _flooded(both, "a", BROADCAST)
    assert (account.copied, account.punted) == (0, MANY)
    both.wired.dl3d.call("acl.change", use=[use])
    wait_until(lambda: not any("which floods" in row["effect"] for row in both.unsupported()), "it was not")


def storms_from_a_port_are_limited(both: Both) -> None:
    before = both.wired.account()
    for number in range(MANY):
        both.wired.wires["d"].send(frame(MULTICAST, HOSTS[10], number))
    account = both.wired.settle(before.received + MANY).since(before)
    assert set(account.drops) == {"storm_multicast"}, account
    assert account.sent == 3 * (MANY - account.dropped)
    assert 0 < account.dropped < MANY
    for wire in both.wired.wires.values():
        numbers(wire)


def dl3_shows_what_the_guard_has_kept_from_linux(both: Both) -> None:
    command = [sys.executable, "-m", "dl3", "show", "bridges", "--socket", str(both.wired.dl3d.socket)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "400"})
    assert "the guard kept Linux from flooding as well" in shown.stdout
    assert "at most multicast 10 frames/s" in shown.stdout


def in_an_operators_namespace_the_table_is_the_operators() -> None:
    with Lab() as lab:
        taps = lab.namespace("taps", silent=True)
        with pair(namespace=taps.name, keep=False) as both:
            account = _flooded(both, "a", BROADCAST)
            assert (account.copied, account.punted) == (0, MANY)

            def missing() -> list[str]:
                return [row["effect"] for row in both.unsupported() if row["what"] == GUARD]

            (effect,) = missing()
            taps.run("sh", "-c", effect.split("install it: ")[1])
            wait_until(lambda: not missing(), "it was found")
            wait_until(lambda: _flooded(both, "a", BROADCAST).copied == 2 * MANY, "workers flooded")
            taps.run("nft", 'delete element bridge dl3d multicast { "d" }')
            wait_until(lambda: bool(missing()), "it was missed")
            taps.run("sh", "-c", missing()[0].split("install it: ")[1])
            wait_until(lambda: not missing(), "it was whole again")
            taps.run("nft", "delete table bridge dl3d")
            wait_until(lambda: bool(missing()), "it was missed")
            for wire in both.wired.wires.values():
                numbers(wire)
            assert _flooded(both, "a", BROADCAST).punted == MANY
