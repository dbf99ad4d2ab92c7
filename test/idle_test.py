"""Lanes that sleep while no frame comes: they forward what comes, and changes of the table do not wait for them."""

from collections.abc import Iterator
from typing import Any

import pytest
from harness.frames import forwarded, ip4, on
from harness.house import House, Port, host_mac
from harness.wire import wait_until

PORTS = [Port(name, keys={"addresses": [f"10.0.{i}.1/24"]}) for i, name in enumerate("ab", 1)]
SETTINGS: dict[str, Any] = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b"],
    "neighbours": ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b"],
}


@pytest.fixture(scope="module")
def asleep() -> Iterator[House]:
    with House(PORTS, idle="sleep", **SETTINGS) as made:
        yield made


def _lane(house: House) -> dict[str, Any]:
    lane: dict[str, Any] = house.dl3d.call("lanes")["lanes"][0]
    return lane


def _sleeps(house: House) -> int:
    return int(_lane(house)["counters"]["sleeps"])


def _wait_asleep(house: House) -> None:
    before = _sleeps(house)
    wait_until(lambda: _sleeps(house) > before, "the lane slept")


def a_lane_that_sleeps_says_so(asleep: House) -> None:
    _wait_asleep(asleep)
    lane = _lane(asleep)
    assert lane["idle"] == "sleep"
    assert 0 < lane["asleep_share"] <= 1
    assert lane["counters"]["slept_cycles"] > 0


def frames_that_come_to_a_sleeping_lane_are_forwarded_in_order(asleep: House) -> None:
    _wait_asleep(asleep)
    before = asleep.account().received
    frames = [on(0, ip4("10.2.0.1", id=number)) for number in range(100)]
    for frame in frames:
        asleep.wires["a"].send(frame)
    account = asleep.settle(before + len(frames))
    assert account.dropped == 0
    mac = host_mac(1)
    assert [asleep.wires["b"].receive(1.0) for _ in frames] == [forwarded(frame, 1, mac) for frame in frames]


def a_change_of_the_table_reaches_a_sleeping_lane(asleep: House) -> None:
    _wait_asleep(asleep)
    for number in range(20):
        route = f"10.3.{number}.0/24 via 10.0.2.2 dev b"
        asleep.dl3d.call("routes.change", changes=[{"op": "add", "route": route}])
    before = asleep.account()
    asleep.wires["a"].send(on(0, ip4("10.3.19.1")))
    assert asleep.settle(before.received + 1).since(before).sent == 1


def a_lane_that_polls_never_sleeps() -> None:
    with House(PORTS, **SETTINGS) as house:
        loops = int(_lane(house)["counters"]["loops"])
        wait_until(lambda: int(_lane(house)["counters"]["empty_loops"]) > loops + 100_000, "the lane polled")
        assert _sleeps(house) == 0
        assert _lane(house)["idle"] == "poll"
