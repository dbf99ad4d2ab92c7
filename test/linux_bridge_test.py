"""Linux's bridge, for which dl3d forwards, beside the same bridge of the kernel alone: the same frames come out."""

import os
import random
import re
import struct
from collections.abc import Iterator

import pytest
from harness.paired import (
    BROADCAST,
    HOSTS,
    LINK_LOCAL,
    MULTICAST,
    NAMES,
    RESERVED,
    STRANGER,
    UNKNOWN,
    Both,
    frame,
    pair,
    spelled,
)
from harness.wire import wait_until

from dl3.model.fault import Fault

LEFT_TO_LINUX = "port of a bridge left to Linux"
BURSTS, LONG_BURSTS = 40, 1800
BURST, LONG_BURST = 19, 60  # frames, at most


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with pair() as made:
        yield made


def _burst(both: Both, dice: random.Random, port: str, targets: list[bytes], most: int) -> list[bytes]:
    """Some frames of the hosts behind a port, or of an unknown one, all to hosts or all to groups.

    Not both: they are in different classes when they are punted, and may overtake each other.
    """
    here = [host for host, at in both.behind.items() if at == port]
    frames = []
    for _ in range(dice.randrange(1, most + 1)):
        both.number += 1
        dst = dice.choice(targets)
        # Even a locked port learns from frames to reserved groups, and tagged frames may overtake others.
        src = LINK_LOCAL if dst in RESERVED else dice.choice(here or [STRANGER])
        one = frame(dst, src, both.number)
        tag = struct.pack("!HH", 0x8100, dice.randrange(1, 4095))
        frames.append(one[:12] + tag + one[12:] if dice.random() < 0.2 else one)
    return frames


OFF = ("isolated", "hairpin", "locked", "neigh_suppress")  # unless changed
ON = ("flood", "mcast_flood", "bcast_flood", "learning", "state")


def _value(word: str, is_on: bool) -> str:
    """In the words of iproute2; of a state, forwarding and learning: without STP, Linux takes blocking back at once."""
    return ("3" if is_on else "2") if word == "state" else "on" if is_on else "off"


TEACHING = ("learning", "locked", "state")


def _send_random_frames(both: Both, n_bursts: int, most: int) -> tuple[int, int]:
    """Return how many frames were sent, and how many times the bridge's ports were changed."""
    dice = random.Random(int(os.environ.get("DL3_SEED", "1")))
    now = {(port, word): word in ON for port in NAMES for word in OFF + ON}
    n_served, n_changes, first, before = 0, 0, both.number, both.wired.account()
    for step in range(n_bursts):
        port, host = dice.choice(NAMES), dice.choice(HOSTS)
        if step % 6 == 5:
            # Back more often than away, so that all ports are served now and then.
            changed = [key for key, is_on in now.items() if is_on != (key[1] in ON)]
            key = dice.choice(changed if changed and dice.random() < 0.6 else list(now))
            now[key] = not now[key]
            both.change(key[0], key[1], _value(key[1], now[key]))
            n_changes += 1
            n_served += both.is_served()
            if key[1] in TEACHING:
                both.greet(key[0])
        if both.behind.get(host) != port:
            both.behind[host] = port
            both.greet(port)
        both.send(port, _burst(both, dice, port, [*HOSTS, UNKNOWN], most))
        both.send(port, _burst(both, dice, port, [BROADCAST, MULTICAST, *RESERVED], most))
    for (port, word), is_on in now.items():
        if is_on != (word in ON):
            both.change(port, word, _value(word, word in ON))
    account = both.wired.account().since(before)
    assert n_served > 1
    assert account.received > n_bursts
    assert account.sent > account.injected  # workers forwarded some, Linux the others
    assert account.copied > n_bursts
    return both.number - first, n_changes


def random_frames_come_out_where_the_kernel_alone_sends_them(both: Both) -> None:
    _send_random_frames(both, BURSTS, BURST)


@pytest.mark.long
def so_they_do_across_many_changes(both: Both) -> None:
    n_frames, n_changes = _send_random_frames(both, LONG_BURSTS, LONG_BURST)
    assert n_frames >= 100_000
    assert n_changes >= 200


def workers_forward_what_linux_has_learnt(both: Both) -> None:
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    for host, port in zip(HOSTS[:2], "ab", strict=True):
        assert spelled(host) in both.sides[0].run("bridge", "fdb", "show", "brport", port)
    before = both.wired.account()
    both.send("a", [frame(HOSTS[1], HOSTS[0], number) for number in range(1000, 1100)])
    after = both.wired.account().since(before)
    assert (after.received, after.sent, after.punted, after.drops) == (100, 100, 0, {})
    both.introduce(HOSTS[1], "c")  # it moves
    both.send("a", [frame(HOSTS[1], HOSTS[0], 2000)])


def _updated_s(both: Both, host: bytes) -> int:
    """Seconds since Linux last heard of a host; -1: it has forgotten it."""
    shown = both.sides[0].run("bridge", "-s", "fdb", "show", "br", "br0")
    found = re.search(rf"{spelled(host)} dev \w+ used \d+/(\d+) master", shown)
    return int(found[1]) if found else -1


def a_host_whose_frames_workers_forward_does_not_age(both: Both) -> None:
    for side in both.sides:
        side.ip("link", "set", "dev", "br0", "type", "bridge", "ageing_time", "4000")
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    wait_until(lambda: _updated_s(both, HOSTS[0]) >= 2, "Linux had not heard of it for 2 s")
    before = both.wired.account()
    both.send("a", [frame(HOSTS[1], HOSTS[0], 1)])
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
    (row,) = (one for one in both.wired.dl3d.call("macs", port="c")["macs"] if one["mac"] == spelled(HOSTS[2]))
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
    both.send("a", [frame(HOSTS[1], HOSTS[0], 1)])
    for side in both.sides:
        side.run("nft", "delete table bridge t")
    wait_until(both.is_served, "workers served it again")
    both.send("a", [frame(HOSTS[1], HOSTS[0], 2)])


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
    assert spelled(HOSTS[0]) in both.sides[0].run("bridge", "fdb", "show", "brport", "a")
    dl3d.start_again()
    dl3d.wait_ready()
    wait_until(lambda: both.is_served() and both.knows(HOSTS[1]) == "b", "the new dl3d served all ports")
    before = both.wired.account()
    both.send("a", [frame(HOSTS[1], HOSTS[0], 1)])
    assert both.wired.account().since(before).punted == 0


def a_port_that_leaves_the_bridge_gets_nothing_of_it(both: Both) -> None:
    both.introduce(HOSTS[0], "a")
    both.introduce(HOSTS[1], "b")
    for side in both.sides:
        side.ip("link", "set", "dev", "b", "nomaster")
    wait_until(lambda: both.knows(HOSTS[1]) is None, "workers had forgotten it")
    both.send("a", [frame(HOSTS[1], HOSTS[0], 1), frame(BROADCAST, HOSTS[0], 2)])
    for side in both.sides:
        side.ip("link", "delete", "dev", "br0")
    wait_until(lambda: not both.wired.dl3d.call("bridges")["bridges"], "there was no bridge")
    assert both.knows(HOSTS[0]) is None
