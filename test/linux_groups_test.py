"""A bridge that snoops: frames to groups come out of dl3d where they come out of the kernel's own, each once."""

import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from harness.paired import BROADCAST, HOSTS, MARK, NAMES, Both, frame, pair
from harness.wire import wait_until
from harness.wired import Account

from dl3.lab.namespace import Namespace

MANY = 20
GROUPS4 = ["239.1.0.1", "239.1.0.2", "224.0.1.5", "224.0.0.251"]  # everybody wants the last one
GROUPS6 = ["ff05::1", "ff05::2", "ff02::fb", "ff02::1"]
GROUP_MAC = bytes.fromhex("01cc00000007")
ROUTER_ALERT = bytes.fromhex("94040000")
HOST = HOSTS[0]


def checksum(data: bytes) -> bytes:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


def address4(text: str) -> bytes:
    """Four bytes."""
    return bytes(int(part) for part in text.split("."))


def address6(text: str) -> bytes:
    """Sixteen bytes of an address as PREFIX::LAST."""
    first, last = text.split("::")
    return bytes.fromhex(first) + bytes(12) + bytes.fromhex(last.rjust(4, "0"))


def header4(group: str, protocol: int, length: int, options: bytes = b"") -> bytes:
    """An IPv4 header."""
    words = (0x45 + len(options) // 4, 0, 20 + len(options) + length, 0, 0, 1, protocol, 0)
    head = struct.pack("!BBHHHBBH", *words) + bytes((10, 0, 0, 1)) + address4(group) + options
    return head[:10] + checksum(head) + head[12:]


def mac4(group: str) -> bytes:
    """The MAC address of a group (RFC 1112)."""
    last = address4(group)
    return b"\x01\x00\x5e" + bytes((last[1] & 0x7F, *last[2:]))


def packet4(group: str, number: int, tag: bytes = b"") -> bytes:
    """A frame with a packet to a group."""
    payload = MARK + struct.pack("!I", number) + bytes(31)
    head = header4(group, 17, 8 + len(payload))
    udp = struct.pack("!HHHH", 1, 2, 8 + len(payload), 0)
    return mac4(group) + HOST + tag + b"\x08\x00" + head + udp + payload


def packet6(group: str, number: int) -> bytes:
    """The same of IPv6."""
    payload = MARK + struct.pack("!I", number) + bytes(31)
    head = struct.pack("!IHBB", 6 << 28, 8 + len(payload), 17, 1) + bytes.fromhex("fe80" + "0" * 27 + "1")
    udp = struct.pack("!HHHH", 1, 2, 8 + len(payload), 1)
    return b"\x33\x33" + address6(group)[-4:] + HOST + b"\x86\xdd" + head + address6(group) + udp + payload


def report(group: str, host: bytes, leaves: bool = False) -> bytes:
    """What a host sends to join or leave a group (IGMPv2)."""
    body = struct.pack("!BBH", 0x17 if leaves else 0x16, 0, 0) + address4(group)
    body = body[:2] + checksum(body) + body[4:]
    to = "224.0.0.2" if leaves else group
    return mac4(to) + host + b"\x08\x00" + header4(to, 2, len(body), ROUTER_ALERT) + body


def _ready(both: Both) -> bool:
    """Whether workers forward to groups by what Linux knows, or flood them."""
    return not any("mcast_snooping" in row["effect"] for row in both.unsupported())


def _set(both: Both, *words: str) -> None:
    for side in both.sides:
        side.ip("link", "set", "dev", "br0", "type", "bridge", *words)
    both.followed()


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with pair() as made:
        _set(made, "mcast_snooping", "1", "mcast_query_response_interval", "100")
        wait_until(lambda: _ready(made), "workers knew the groups")
        made.introduce(HOST, "a")
        yield made


def _is_querier(both: Both, is_one: bool) -> None:
    _set(both, "mcast_querier", str(int(is_one)))
    if is_one:  # Linux floods for as long as hosts may answer; what it did is known afterwards
        wait_until(lambda: _ready(both) and _works_by_table(both), "both sent by the table", 60)


def _works_by_table(both: Both) -> bool:
    """Whether both keep back what nobody is known to want."""
    row = both.wired.dl3d.call("bridges")["bridges"][0]
    return bool(row["snooping"] and row["snooping"]["ip4_querier"])


def _mdb(side: Namespace) -> list[str]:
    """What the kernel knows, without times."""
    return sorted(side.run("bridge", "mdb", "show", "dev", "br0").split("\n"))


def _wanted(side: Namespace) -> set[str]:
    """The groups that the kernel knows."""
    words = [line.split() for line in _mdb(side) if "grp" in line]
    return {line[line.index("grp") + 1] for line in words}


def _known(both: Both) -> set[str]:
    """The groups that workers know."""
    return {str(row["group"]) for row in _shown(both)}


def _settled(both: Both) -> None:
    """Both kernels have the same groups, and workers know those of theirs."""
    try:
        wait_until(lambda: _mdb(both.sides[0]) == _mdb(both.sides[1]), "both had the same groups")
    except AssertionError as error:
        raise AssertionError(f"{[_mdb(side) for side in both.sides]}; changes: {both.changes}") from error
    both.followed()
    wait_until(lambda: _known(both) == _wanted(both.sides[0]), "workers knew them")


def _add(both: Both, port: str, group: str, word: str = "add") -> None:
    for side in both.sides:
        side.run("bridge", "mdb", word, "dev", "br0", "port", port, "grp", group, *(["permanent"] * (word == "add")))
    _settled(both)


def _join(both: Both, port: str, group: str, host: bytes) -> None:
    """Have a host join a group, and wait until all have followed."""
    for wire in (both.wired.wires[port], both.control[port]):
        wire.send(report(group, host))
    place = f"port {port} grp {group} "
    wait_until(lambda: all(place in str(_mdb(side)) for side in both.sides), "both had learnt that")
    _settled(both)


def _send(both: Both, port: str, frames: list[bytes]) -> Account:
    before = both.wired.account()
    both.send(port, frames)
    both.number += len(frames)
    return both.wired.account().since(before)


def _all(both: Both) -> list[bytes]:
    """A frame to each group."""
    made = [packet4(group, both.number + 1 + i) for i, group in enumerate(GROUPS4)]
    made += [packet6(group, both.number + 1 + len(made) + i) for i, group in enumerate(GROUPS6)]
    made.append(packet4(GROUPS4[0], both.number + 1 + len(made), bytes.fromhex("81000005")))
    return [*made, frame(GROUP_MAC, HOST, both.number + 1 + len(made))]


def without_a_querier_workers_flood_packets_to_groups(both: Both) -> None:
    account = _send(both, "a", [packet4(GROUPS4[0], both.number + 1 + i) for i in range(MANY)])
    by_workers = account.sent - account.injected  # Linux sends reports of its own groups
    assert (account.copied, by_workers, account.punted) == (2 * MANY, 3 * MANY, 0)
    both.change("c", "mcast_flood", "off")
    account = _send(both, "a", _all(both))
    assert account.punted == 0
    both.change("c", "mcast_flood", "on")


def with_a_querier_groups_go_where_they_are_wanted(both: Both) -> None:
    _is_querier(both, True)
    _add(both, "b", GROUPS4[0])
    account = _send(both, "a", [packet4(GROUPS4[0], both.number + 1 + i) for i in range(MANY)])
    assert (account.copied, account.sent - account.injected, account.punted) == (0, MANY, 0)
    for port in NAMES:
        account = _send(both, port, _all(both))
        assert account.punted == 0
    _add(both, "b", GROUPS4[0], "del")


def a_host_that_joins_is_served(both: Both) -> None:
    for host, port in ((HOSTS[1], "c"), (HOSTS[2], "d")):
        _join(both, port, GROUPS4[1], host)
        account = _send(both, "a", _all(both))
        assert account.punted == 0
    shown = _shown(both)
    for wire in (both.wired.wires["c"], both.control["c"]):
        wire.send(report(GROUPS4[1], HOSTS[1], leaves=True))
    wait_until(lambda: f"port c grp {GROUPS4[1]}" not in str([_mdb(side) for side in both.sides]), "it had left")
    _settled(both)
    _send(both, "a", _all(both))
    assert any(row["group"] == GROUPS4[1] and set(row["ports"]) >= {"c", "d"} for row in shown)


def _shown(both: Both) -> list[dict[str, Any]]:
    return list(both.wired.dl3d.call("groups")["groups"])


def routers_get_what_nobody_is_known_to_want(both: Both) -> None:
    both.change("d", "mcast_router", "2")
    assert _send(both, "a", _all(both)).punted == 0
    both.change("d", "mcast_router", "1")
    _send(both, "a", _all(both))


def groups_of_mac_addresses_need_no_querier(both: Both) -> None:
    _add(both, "c", "01:cc:00:00:00:07")
    _is_querier(both, False)
    account = _send(both, "a", [frame(GROUP_MAC, HOST, both.number + 1)])
    assert (account.sent - account.injected, account.punted) == (1, 0)
    _is_querier(both, True)
    _add(both, "c", "01:cc:00:00:00:07", "del")


def the_bridge_itself_gets_what_it_wants(both: Both) -> None:
    for side in both.sides:
        side.run("bridge", "mdb", "add", "dev", "br0", "port", "br0", "grp", GROUPS4[0])
    _settled(both)
    account = _send(both, "a", [packet4(GROUPS4[0], both.number + 1)])
    assert account.punted == 1
    account = _send(both, "a", [packet4(GROUPS4[2], both.number + 1)])
    assert account.punted == 0
    for side in both.sides:
        side.run("bridge", "mdb", "del", "dev", "br0", "port", "br0", "grp", GROUPS4[0])
    _settled(both)


def what_workers_do_not_follow_is_linuxs(both: Both) -> None:
    both.change("b", "mcast_to_unicast", "on")
    wait_until(lambda: any("mcast_to_unicast" in row["effect"] for row in both.unsupported()), "it was named")
    account = _send(both, "a", [packet4(GROUPS4[0], both.number + 1)])
    assert (account.copied, account.punted) == (0, 1)
    both.change("b", "mcast_to_unicast", "off")
    wait_until(lambda: _ready(both), "workers forwarded again")


def _change(both: Both, choose: random.Random) -> None:
    port, group = choose.choice(NAMES), choose.choice((*GROUPS4[:3], *GROUPS6[:2]))
    kind = choose.randrange(6)
    if kind == 0:
        both.change(port, choose.choice(("mcast_flood", "isolated", "hairpin")), choose.choice(("on", "off")))
    elif kind == 1:
        both.change(port, "mcast_router", choose.choice(("0", "1", "2")))
    elif kind == 2:
        _join(both, port, choose.choice(GROUPS4[:3]), HOSTS[3])
    else:
        is_there = f"port {port} grp {group} " in str(_mdb(both.sides[0]))
        _add(both, port, group, "del" if is_there else "add")


@pytest.mark.long
def at_random_both_do_the_same(both: Both) -> None:
    """200 changes, each followed by frames to all groups."""
    choose = random.Random(26)
    _is_querier(both, True)
    for _ in range(200):
        _change(both, choose)
        _send(both, "a", _all(both))
        account = _send(both, "a", [packet4(GROUPS4[0], both.number + 1), frame(BROADCAST, HOST, both.number + 2)])
        assert account.is_closed
