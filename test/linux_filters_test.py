"""tc filters of TAP interfaces: workers judge by those that they understand, Linux by all others.

This kernel has filters of kind u32 and no actions, so that all packets pass here; test/guest/filters.py compares drops
and marks with the kernel's. Which filter decides is told by its counter.
"""

import random
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from harness.frames import IP, TCP, UDP, Raw, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder, host_mac

from dl3.lab.forwarder import Forwarder

PORTS = [Port("left"), Port("right")]
N_PACKETS, SHARE, DRAW = 2000, 50, 4
INGRESS, EGRESS = "tc:left:in", "tc:right:out"


@dataclass(frozen=True)
class Filter:
    """A filter of kind u32 that ends the search."""

    priority: int
    protocol: int
    dst: str
    bits: int
    port: int | None

    def words(self, device: str, side: str) -> list[str]:
        """The command of tc."""
        text = (
            f"filter add dev {device} {side} pref {self.priority} protocol ip u32 match ip dst {self.dst}/{self.bits}"
        )
        text += f" match ip protocol {self.protocol} 0xff"
        if self.port is not None:
            text += f" match ip dport {self.port} 0xffff match u16 0 0x1fff at 6"
        return f"{text} flowid 1:1".split()

    def matches(self, packet: "Sent") -> bool:
        """As the kernel judges, bit by bit."""
        shift = 32 - self.bits
        theirs, ours = (int.from_bytes(socket.inet_aton(address)) >> shift for address in (packet.dst, self.dst))
        return theirs == ours and self.protocol == packet.protocol and self.port in {None, packet.port}


@dataclass(frozen=True)
class Sent:
    """A packet as filters see it."""

    protocol: int
    dst: str
    port: int

    def frame(self) -> bytes:
        """From the host on the left."""
        kind = UDP if self.protocol == 17 else TCP
        return on(0, IP(src="10.0.1.2", dst=self.dst) / kind(sport=9, dport=self.port) / Raw(b"filtered"))


def _address(dice: random.Random) -> str:
    return f"10.9.{dice.randrange(DRAW)}.{dice.randrange(DRAW)}"


def _filters(dice: random.Random, n: int) -> list[Filter]:
    ports = [None, *range(50, 50 + DRAW)]
    return [
        Filter(priority, dice.choice((6, 17)), _address(dice), dice.choice((16, 24, 31, 32)), dice.choice(ports))
        for priority in dice.sample(range(1, 1000), n)
    ]


def _packets(dice: random.Random, n: int) -> list[Sent]:
    return [Sent(dice.choice((6, 17)), _address(dice), 50 + dice.randrange(DRAW)) for _ in range(n)]


def _expected(filters: Sequence[Filter], packets: Sequence[Sent]) -> Counter[int]:
    """By priority, 0 for none: of how many packets each filter decides."""
    found: Counter[int] = Counter()
    order = sorted(filters, key=lambda one: one.priority)
    for packet in packets:
        found[next((one.priority for one in order if one.matches(packet)), 0)] += 1
    return found


def _configure(wired: WiredForwarder) -> None:
    for index, port in enumerate(PORTS):
        wired.dl3d.taps.ip("address", "replace", f"10.0.{index + 1}.1/24", "dev", port.name)
    wired.dl3d.taps.ip(*f"neighbour replace 10.0.2.2 lladdr {host_mac(1)} dev right nud permanent".split())
    wired.dl3d.taps.ip("route", "replace", "10.9.0.0/16", "via", "10.0.2.2")


def _follow(dl3d: Forwarder) -> None:
    wait_until(lambda: dl3d.call("mirror")["state"] == "following", "the mirror follows")
    wait_until(lambda: not dl3d.call("verify")["differences"], "workers have the routes")


def _named(wired: WiredForwarder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = wired.dl3d.call("unsupported")["unsupported"]
    return found


def _tc(wired: WiredForwarder, *words: str) -> None:
    wired.dl3d.taps.run("tc", *words)


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, linux={"keep": True}) as made:
        _configure(made)
        _follow(made.dl3d)
        for port in PORTS:
            _tc(made, "qdisc", "add", "dev", port.name, "clsact")
        yield made
        made.settle(0)


def _lists(wired: WiredForwarder) -> dict[str, int]:
    """Number of rules, by list of tc filters."""
    return {one["name"]: one["n_rules"] for one in wired.dl3d.call("acls")["lists"] if one["source"] == "tc"}


def _settle(wired: WiredForwarder, **lists: int) -> None:
    """Workers have these lists, and Linux is left nothing."""
    names = {"ingress": INGRESS, "egress": EGRESS}
    expected = {names[side]: n for side, n in lists.items() if n}
    wait_until(lambda: _lists(wired) == expected and not _named(wired), f"workers have {expected}")


def _counted(wired: WiredForwarder, name: str) -> Counter[int]:
    """By priority of the filter, 0 for none."""
    (found,) = wired.dl3d.call("acls", list=name, limit=1000)["lists"]
    counts = Counter({int(rule["name"].split("-")[0]): rule["packets"] for rule in found["rules"]})
    return +(counts + Counter({0: found["rest"]["packets"]}))


def _cross(wired: WiredForwarder, packets: Sequence[Sent]) -> None:
    """All arrive, in shares that fit into every buffer; workers have forwarded them."""
    before, n = wired.account(), 0
    for start in range(0, len(packets), SHARE):
        share = packets[start : start + SHARE]
        for packet in share:
            wired.wires["left"].send(packet.frame())
        n += len(share)
        wired.settle(before.received + n)
    left = wired.settle(before.received + n).since(before)
    assert left.sent - left.injected == n, left


def random_packets_meet_the_filters_that_linux_would_try(wired: WiredForwarder) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    dice = random.Random(seed)
    ways = {INGRESS: ("left", "ingress", _filters(dice, 12)), EGRESS: ("right", "egress", _filters(dice, 12))}
    for device, side, filters in ways.values():
        for one in filters:
            _tc(wired, *one.words(device, side))
    _settle(wired, ingress=12, egress=12)
    packets = _packets(dice, N_PACKETS)
    _cross(wired, packets)
    for name, (_, _, filters) in ways.items():
        assert _counted(wired, name) == +_expected(filters, packets), f"seed {seed}: {name}"


def a_check_tells_which_filter_decides(wired: WiredForwarder) -> None:
    for one in (Filter(5, 17, "10.9.0.0", 16, 53), Filter(9, 17, "10.9.0.0", 16, None)):
        _tc(wired, *one.words("left", "ingress"))
    _settle(wired, ingress=2)
    words: dict[str, Any] = {"src": "10.0.1.2", "dst": "10.9.0.1", "protocol": "udp", "src_port": 9}
    found = wired.dl3d.call("acl.check", interface="left", direction="in", dst_port=54, **words)
    assert (found["list"], found["do"], found["number"]) == (INGRESS, "permit", 2)
    assert found["before"][0]["differs"] == "to_port"
    found = wired.dl3d.call("acl.check", list=INGRESS, dst_port=53, **words)
    assert (found["number"], found["name"].split("-")[0]) == (1, "5")


def filters_come_change_and_go_under_traffic(wired: WiredForwarder) -> None:
    dice = random.Random(1)
    first, second = Filter(5, 17, "10.9.0.0", 16, None), Filter(6, 6, "10.9.0.0", 16, None)
    packets = _packets(dice, SHARE)
    for step, n in ((first.words("left", "ingress"), 1), (second.words("left", "ingress"), 2)):
        _tc(wired, *step)
        before = wired.account()
        for packet in packets:  # while it changes, some go by Linux: none is lost
            wired.wires["left"].send(packet.frame())
        wired.settle(before.received + len(packets))
        _settle(wired, ingress=n)
        counted = _counted(wired, INGRESS)  # also those that came since workers have the list
        _cross(wired, packets)
    assert (_counted(wired, INGRESS) - counted)[6] == sum(packet.protocol == 6 for packet in packets)
    _tc(wired, "filter", "delete", "dev", "left", "ingress", "pref", "5")
    _settle(wired, ingress=1)
    _tc(wired, "filter", "delete", "dev", "left", "ingress")
    _settle(wired)
    _tc(wired, *second.words("left", "ingress"))
    _settle(wired, ingress=1)
    _tc(wired, "qdisc", "replace", "dev", "left", "clsact")
    _settle(wired, ingress=1)
    _tc(wired, "qdisc", "delete", "dev", "left", "clsact")
    _settle(wired)
    _cross(wired, packets)


def a_thousand_filters_one_by_one_make_few_lists(wired: WiredForwarder) -> None:
    filters = [Filter(priority, 17, "10.9.0.0", 16, 1000 + priority) for priority in range(1, 301)]
    for one in filters:
        _tc(wired, *one.words("left", "ingress"))
    _settle(wired, ingress=300)
    _cross(wired, [Sent(17, "10.9.1.1", 1150)])
    assert _counted(wired, INGRESS) == Counter({150: 1})


def _strange(wired: WiredForwarder) -> list[dict[str, Any]]:
    return [row for row in _named(wired) if row["where"] == "dev left ingress"]


BY_TTL = "pref 7 protocol ip u32 match u8 64 0xff at 8 flowid 1:1"


def a_filter_that_is_not_understood_is_named_and_linux_judges(wired: WiredForwarder) -> None:
    _tc(wired, *Filter(5, 17, "10.9.0.0", 16, None).words("left", "ingress"))
    _settle(wired, ingress=1)
    _tc(wired, "filter", "add", "dev", "left", "ingress", *BY_TTL.split())
    wait_until(lambda: bool(_strange(wired)) and not _lists(wired), "it is named, and workers have no list")
    (row,) = _strange(wired)
    assert row["what"].startswith("filter u32 pref 7 handle 0x80")
    assert row["effect"].endswith(": all its frames, and all packets routed via it, are punted to Linux")
    before = wired.account()
    wired.wires["left"].send(Sent(17, "10.9.1.1", 50).frame())
    wait_until(lambda: wired.account().since(before).injected >= 1, "Linux has forwarded it")
    assert wired.settle(before.received + 1).since(before).punted >= 1
    _tc(wired, "filter", "delete", "dev", "left", "ingress", "pref", "7")
    _settle(wired, ingress=1)


def after_kill_9_a_new_dl3d_has_the_filters(wired: WiredForwarder) -> None:
    _tc(wired, *Filter(5, 17, "10.9.0.0", 16, None).words("left", "ingress"))
    _settle(wired, ingress=1)
    wired.dl3d.kill()
    _tc(wired, *Filter(4, 6, "10.9.0.0", 16, None).words("left", "ingress"))
    wired.dl3d.start_again()
    wired.dl3d.wait_ready()
    _follow(wired.dl3d)
    _settle(wired, ingress=2)
    _cross(wired, [Sent(6, "10.9.1.1", 50)] * 3)
    assert _counted(wired, INGRESS) == Counter({4: 3})
