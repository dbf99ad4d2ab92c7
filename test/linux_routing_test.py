"""FRR with the TAP interfaces, BIRD beyond the ports, both unmodified: the router is the kernel, then dl3d."""

import contextlib
import re
import time
from collections.abc import Iterator
from typing import Literal

import pytest
from harness.router import ROUTERS, Dl3dRouter, KernelRouter
from harness.routing import LOOPBACK, N_NEIGHBOURS, OSPF_DEAD_S, Routing
from harness.shell import ask, ping
from harness.wire import wait_until

from dl3.lab.namespace import Lab

SESSIONS_S = ROUTES_S = 120.0
CRASHES = 5
N_ECHOES = 1000  # 10 ms apart: longer than the BGP hold time
LEARNED = ("10.9.9.10", "10.9.9.11", "20.0.0.0/16", "20.1.0.0/16")


@contextlib.contextmanager
def _routing_on(kind: Literal["kernel", "dl3d"]) -> Iterator[Routing]:
    """All sessions up around one of the two routers. Without BFD, which ends them when a daemon waits 0.9 s for a core."""
    with Lab() as lab:
        router = Dl3dRouter(lab, keep=True) if kind == "dl3d" else KernelRouter(lab)
        with contextlib.closing(router), Routing(lab, router) as made:
            router.start(N_NEIGHBOURS)
            made.start(has_bfd=False)
            _wait_until_routed(made)
            router.settle()
            yield made
            router.check()


def _wait_until_routed(routing: Routing) -> None:
    wait_until(routing.are_up, "all sessions were up", SESSIONS_S)
    wait_until(lambda: _has_learned(routing), "all routes had come", ROUTES_S)


def _has_learned(routing: Routing) -> bool:
    """The router has all routes, and the neighbours have each other's."""
    own = routing.router.namespace.ip("route")
    theirs = [neighbour.ip("route") + neighbour.ip("-6", "route") for neighbour in routing.neighbours]
    far = [[address.format(1 - number) for address in LOOPBACK.values()] for number in range(N_NEIGHBOURS)]
    return all(prefix in own for prefix in LEARNED) and all(
        address in reported for wanted, reported in zip(far, theirs, strict=True) for address in wanted
    )


@pytest.fixture(scope="module", params=ROUTERS)
def routing(request: pytest.FixtureRequest) -> Iterator[Routing]:
    with _routing_on(request.param) as made:
        yield made


@pytest.mark.parametrize("family", [4, 6])
def what_the_daemons_learned_carries_packets(routing: Routing, family: int) -> None:
    for number, neighbour in enumerate(routing.neighbours):
        source, target = (LOOPBACK[family].format(which) for which in (number, 1 - number))
        pings = ping(neighbour, target, "-I", source)
        assert pings.received == pings.sent, pings.text


@pytest.mark.long
def sessions_stay_up_while_neighbours_ping(routing: Routing) -> None:
    before = routing.sessions()
    options = ("-n", "-I", "10.9.9.10", "-i", "0.01", "-c", str(N_ECHOES), "-w", "60")  # -w: waits for the last reply
    reported = ask(routing.neighbours[0], "ping", *options, "10.9.9.11", timeout_s=90.0)
    assert routing.flapped(before) == []
    came = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", reported)]
    # A lost reply leaves a gap: ping continues until this many arrived, possibly with one more in flight.
    assert came == list(range(1, len(came) + 1)), reported
    assert len(came) >= N_ECHOES


def _crash_and_restart(router: Dl3dRouter) -> float:
    """Kill dl3d and start it again; returns the seconds until its workers used what Linux has."""
    forwarder = router.forwarder
    assert forwarder
    killed = time.monotonic()
    forwarder.kill()
    assert "10.9.9.11" in router.namespace.ip("route"), "Linux keeps its routes: the TAP interfaces are held"
    forwarder.start_again()
    forwarder.wait_ready()
    router.settle()
    return time.monotonic() - killed


@pytest.mark.long
@pytest.mark.alone
def a_crash_of_dl3d_costs_no_session() -> None:
    """Only a restart that takes less than half the dead interval counts: on a starved machine sessions end rightly."""
    with _routing_on("dl3d") as routing:
        assert isinstance(routing.router, Dl3dRouter)
        outages_s = list[float]()
        while not outages_s or outages_s[-1] >= OSPF_DEAD_S / 2:
            assert len(outages_s) < CRASHES, f"each restart was slow: {outages_s} s"
            _wait_until_routed(routing)
            before = routing.sessions()
            outages_s.append(_crash_and_restart(routing.router))
        pings = ping(routing.neighbours[0], "10.9.9.11", "-I", "10.9.9.10")
        assert pings.received == pings.sent, pings.text
        time.sleep(OSPF_DEAD_S * 1.5)
        assert routing.flapped(before) == []
