"""Random changes of links, addresses, next hops and routes in Linux: workers decide as Linux does."""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from harness.decisions import Decision, ask_linux, ask_workers, is_left, is_same, prefixes_of_objects
from harness.network import FAMILIES, Network
from harness.network import network as address_of
from harness.router import Dl3dRouter
from harness.shell import batch

PORTS = ("p0", "p1", "p2", "p3")
METRICS = ("", "", " metric 10", " metric 20")
KINDS = ("unreachable", "prohibit", "blackhole")
N_CHANGES = 25
SEEDS = (1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4)))


def _prefixes(family: int) -> list[str]:
    """Prefixes, some of which cover each other."""
    if family == 4:
        return [
            "0.0.0.0/0",
            *(f"10.{i}.0.0/16" for i in (20, 21)),
            "10.20.128.0/17",
            "10.20.7.0/24",
            "10.20.7.8/31",
            "10.21.3.4/32",
        ]
    first = ["::/0", "2001:db8:20::/48", "2001:db8:21::/48", "2001:db8:20:7::/64", "2001:db8:20:7::8/127"]
    return [*first, "2001:db8:21:3::4/128", "2001:db8:20:7:8000::/65"]


ADDRESSES = {
    4: [
        "10.20.0.1",
        "10.20.128.1",
        "10.20.7.1",
        "10.20.7.8",
        "10.20.7.9",
        "10.20.7.10",
        "10.21.3.3",
        "10.21.3.4",
        "10.99.0.1",
    ]
    + [f"10.0.{link}.{number}" for link in (0, 1, 2, 3, 41, 42) for number in (0, 1, 2, 77, 255)],
    6: ["2001:db8:20::1", "2001:db8:20:7::1", "2001:db8:20:7::8", "2001:db8:20:7::9", "2001:db8:20:7:8000::1"]
    + ["2001:db8:21:3::4", "2001:db8:21:3::5", "2001:db8:99::1"]
    + [f"2001:db8:a{link}::{number}" for link in (0, 1, 2, 3, 41, 42) for number in (0, 1, 2, 77)],
}


@dataclass
class Chance:
    """Generates changes for `ip -batch`; many are refused, like those of an operator."""

    seed: int
    draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    def change(self) -> str:
        """One line."""
        kinds = (self._route, self._next_hop, self._address, self._link)
        return self.draw.choices(kinds, weights=(12, 4, 3, 2))[0]()

    def _way(self, family: int) -> str:
        link = self.draw.randrange(4)
        via_family = 6 if family == 6 or self.draw.random() < 0.2 else 4
        word = "inet6 " if via_family > family else ""
        return f"via {word}{address_of(via_family, link, self.draw.choice((2, 3, 77)))} dev p{link}"

    def _target(self, family: int) -> str:
        pick = self.draw.random()
        if pick < 0.15:
            return f"nhid {self.draw.randrange(1, 9)}"
        if pick < 0.3:
            return f"dev {self.draw.choice((*PORTS, 'gone0'))}"
        if pick < 0.5:
            ways = (
                f"nexthop {self._way(family)} weight {self.draw.choice((1, 1, 3))}"
                for _ in range(self.draw.randint(2, 4))
            )
            return " ".join(ways)
        return self._way(family)

    def _route(self) -> str:
        family = self.draw.choice(FAMILIES)
        prefix, metric = self.draw.choice(_prefixes(family)), self.draw.choice(METRICS)
        table = " table 100" if self.draw.random() < 0.1 else ""
        op = self.draw.choices(("add", "replace", "append", "prepend", "del"), weights=(4, 3, 2, 1, 3))[0]
        if op == "del" and self.draw.random() < 0.7:
            return f"route del {prefix}{metric}{table}"
        if self.draw.random() < 0.15:
            kind = self.draw.choice(KINDS)
            return f"route {op} {kind} {prefix}{self._own_metric(family, 'dev') or metric}{table}"
        target = self._target(family)
        return f"route {op} {prefix} {target}{self._own_metric(family, target) or metric}{table}"

    def _own_metric(self, family: int, target: str) -> str:
        """The kernel's IPv6 dump omits routes between next hops of the same metric and prefix."""
        return " metric 30" if family == 6 and target.startswith(("nhid", "dev")) else ""

    def _next_hop(self) -> str:
        number, pick = self.draw.randrange(1, 9), self.draw.random()
        if pick < 0.25:
            return f"nexthop del id {number}"
        if pick < 0.5:
            members = "/".join(f"{i},{self.draw.choice((1, 2))}" for i in self.draw.sample(range(1, 6), 2))
            return f"nexthop replace id {self.draw.randrange(6, 9)} group {members}"
        if pick < 0.55:
            return f"nexthop replace id {number} blackhole"
        return f"nexthop replace id {self.draw.randrange(1, 6)} {self._way(self.draw.choice(FAMILIES))}"

    def _address(self) -> str:
        family, link = self.draw.choice(FAMILIES), self.draw.choice((1, 2, 3, 41, 42))
        op = self.draw.choice(("add", "add", "del"))
        bits = self.draw.choice((24, 24, 25, 32)) if family == 4 else self.draw.choice((64, 64, 128))
        return f"address {op} {address_of(family, link, 1)}/{bits} dev p{link % 10 if link > 9 else link}"

    def _link(self) -> str:
        port = self.draw.choice(PORTS[1:])
        return self.draw.choice(
            (
                f"link set {port} down",
                f"link set {port} up",
                f"link set {port} up",
                "link del gone0",
                "link add gone0 up type veth peer name gone1",
                f"link set {port} mtu {self.draw.choice((1400, 1500))}",
            )
        )


@pytest.fixture(scope="module")
def made() -> Iterator[Network]:
    """With dl3d as router, compared with its own Linux."""
    network = Network("dl3d")
    yield network
    network.close()


@pytest.fixture
def network(made: Network) -> Iterator[Network]:
    """The initial state."""
    made.reset()
    yield made
    batch(made.the_router.namespace, ["link del gone0"], may_fail=True)
    made.the_router.check()


@dataclass
class Comparison:
    """Compares Linux and workers for all addresses."""

    differences: list[str] = field(default_factory=list)
    objects: frozenset[str] = frozenset()  # IPv6 prefixes routed via next-hop objects
    n_left: int = 0  # decisions about ports that are nevertheless left to Linux: dl3d must say why

    def compare(self, router: Dl3dRouter, address: str, linux: Decision) -> None:
        """Compare one address, given Linux's decision."""
        workers, is_sure = ask_workers(router, address)
        is_told = linux.kind != "no_route" or workers.prefix not in self.objects
        if is_told and not is_same(linux, workers, PORTS):
            self.differences.append(f"{address}: Linux {linux}, workers {workers}")
        elif not is_sure:
            words = router.call("route", address=address)["linux"]
            self.differences.append(f"{address}: both {workers}, but dl3d says: {words}")
        self.n_left += is_left(workers) and {way[1] for way in linux.ways} <= set(PORTS)


def _compare(router: Dl3dRouter) -> Comparison:
    found = Comparison(objects=prefixes_of_objects(router.namespace))
    for family in FAMILIES:
        answers = ask_linux(router.namespace, ADDRESSES[family], address_of(family, 0, 2), "p0")
        for address, linux in zip(ADDRESSES[family], answers, strict=True):
            found.compare(router, address, linux)
    return found


def _apply(router: Dl3dRouter, lines: list[str]) -> None:
    """Make changes and compare until everything matches, for a minute."""
    batch(router.namespace, lines, may_fail=True)
    router.settle()
    deadline = time.monotonic() + 60.0
    while (found := _compare(router)).differences:
        if time.monotonic() > deadline:
            raise AssertionError("\n".join([*found.differences, "after:", *lines]))
    assert not found.n_left or "several IPv6 routes with the same metric" in str(router.call("unsupported"))


@pytest.mark.parametrize("seed", SEEDS)
def workers_decide_as_linux_does(network: Network, seed: int, is_long: bool) -> None:
    router, chance = network.dl3d, Chance(seed)
    assert router
    for number in range(400 if is_long else 50):
        try:
            _apply(router, [chance.change() for _ in range(N_CHANGES)])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, batch {number}: {error}") from error
    assert router.call("verify")["listed"] == []
