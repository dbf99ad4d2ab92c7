"""Qdiscs of TAP interfaces: workers shape by those that they follow, Linux by all others, which are named."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from harness.frames import ip4, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder, host_mac

PORTS = [Port("left"), Port("right")]
QOS: dict[str, Any] = {"held_packets": 4096}
SENT, FRAME, PATIENCE_S = 100, 1014, 120.0
# 8,000 bytes/s, the lowest rate of workers: what passes at once is the burst, what waits the limit.
RATE, BURST, LIMIT = 8000, 4000, 6 * FRAME
TBF = f"tbf rate 64kbit burst {BURST} limit {LIMIT}"
MTU_FRAME, HEADERS = 1514, 14 + 20 + 8
QUEUE = "tc:right"


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    with WiredForwarder(PORTS, qos=QOS, linux={"keep": True}) as made:
        for index, port in enumerate(PORTS):
            made.dl3d.taps.ip("address", "replace", f"10.0.{index + 1}.1/24", "dev", port.name)
        made.dl3d.taps.ip(*f"neighbour replace 10.0.2.2 lladdr {host_mac(1)} dev right nud permanent".split())
        made.dl3d.taps.ip("route", "replace", "10.9.0.0/16", "via", "10.0.2.2")
        wait_until(lambda: made.dl3d.call("mirror")["state"] == "following", "the mirror follows")
        wait_until(lambda: not made.dl3d.call("verify")["differences"], "workers have the routes")
        yield made
        made.settle(0)


def _tc(wired: WiredForwarder, words: str) -> None:
    wired.dl3d.taps.run("tc", *words.split())


def _named(wired: WiredForwarder) -> dict[str, str]:
    return {row["what"]: row["effect"] for row in wired.dl3d.call("unsupported")["unsupported"]}


def _profile(wired: WiredForwarder) -> str:
    """The profile of the queue of right; nothing: workers have none."""
    names = [one["name"] for one in wired.dl3d.call("subscribers.list")["subscribers"]]
    if QUEUE not in names:
        return ""
    (found,) = (one["profile"] for one in wired.dl3d.call("subscribers")["profile_list"])
    return str(found)


def _wait_for_queue(wired: WiredForwarder, words: str) -> None:
    wait_until(lambda: words in _profile(wired) and not _named(wired), f"workers have {words}", PATIENCE_S)


def _send(wired: WiredForwarder, n: int) -> None:
    before = wired.account().received
    for _ in range(n):
        wired.wires["left"].send(on(0, ip4("10.9.1.1", FRAME - HEADERS)))
    wired.settle(before + n)


def _passed(wired: WiredForwarder) -> tuple[int, int]:
    """Packets and bytes that have left by the queue; what Linux sends itself passes Linux's own."""
    found = wired.dl3d.call("subscribers.find", name=QUEUE)["down"]["shaping"]["classes"][3]
    return found["packets"], found["bytes"]


def a_tbf_passes_its_burst_and_holds_its_limit(wired: WiredForwarder) -> None:
    """As Linux's bucket: not more than the burst and what the rate has given since, and not more waits than the limit."""
    _tc(wired, f"qdisc add dev right root handle 1: {TBF}")
    _wait_for_queue(wired, f"shape 64kbit/s burst {BURST - MTU_FRAME}B")
    before, began_s = wired.account(), time.monotonic()
    _send(wired, SENT)
    now = wired.account().since(before)
    most = BURST + RATE * (time.monotonic() - began_s)
    assert now.held <= LIMIT // FRAME
    assert _passed(wired)[1] <= most
    assert set(now.drops) <= {"shape_limit"}
    wait_until(lambda: wired.account().held == 0, "all that waits has left", PATIENCE_S)
    packets, counted = _passed(wired)
    assert packets + wired.account().since(before).drops.get("shape_limit", 0) == SENT
    assert packets >= LIMIT // FRAME
    assert counted == packets * FRAME


def htb_with_a_class_is_followed_through_changes(wired: WiredForwarder) -> None:
    _tc(wired, "qdisc add dev right root handle 1: htb default 1")
    wait_until(lambda: "qdisc htb 1:" in _named(wired), "it is named without its class", PATIENCE_S)
    _tc(wired, "class add dev right parent 1: classid 1:1 htb rate 8mbit burst 100000 cburst 100000")
    _wait_for_queue(wired, "shape 8Mbit/s burst 100000B counts ip overhead 14")
    _tc(wired, "qdisc add dev right parent 1:1 handle 2: bfifo limit 50000")
    _wait_for_queue(wired, "limit_bytes 50000B")
    _tc(wired, "class change dev right parent 1: classid 1:1 htb rate 16mbit burst 100000 cburst 100000")
    _wait_for_queue(wired, "shape 16Mbit/s")
    _send(wired, 20)
    wait_until(lambda: _passed(wired) == (20, 20 * FRAME), "all have left by the queue", PATIENCE_S)
    _tc(wired, "class add dev right parent 1: classid 1:2 htb rate 1mbit")
    wait_until(lambda: "more than one class" in _named(wired).get("qdisc htb 1:", ""), "it is named", PATIENCE_S)
    wait_until(lambda: _profile(wired) == "", "workers have no queue", PATIENCE_S)
    _tc(wired, "class delete dev right classid 1:2")
    _wait_for_queue(wired, "shape 16Mbit/s")
    _tc(wired, "qdisc delete dev right root")
    wait_until(lambda: _profile(wired) == "" and not _named(wired), "it is gone", PATIENCE_S)
    before = wired.account()
    _send(wired, 20)
    wait_until(lambda: wired.account().since(before).sent >= 20, "all pass", PATIENCE_S)


def a_queue_outlives_a_reload_and_a_load(wired: WiredForwarder) -> None:
    _tc(wired, f"qdisc add dev right root handle 1: {TBF}")
    _wait_for_queue(wired, "shape 64kbit/s")
    wired.dl3d.call("reload")
    _wait_for_queue(wired, "shape 64kbit/s")


def without_queues_the_remedy_is_named() -> None:
    with WiredForwarder(PORTS, linux={"keep": True}) as wired:
        wait_until(lambda: wired.dl3d.call("mirror")["state"] == "following", "the mirror follows")
        _tc(wired, f"qdisc add dev right root handle 1: {TBF}")
        wait_until(
            lambda: "add qos.held_packets" in _named(wired).get("qdisc tbf 1:", ""), "the remedy is named", PATIENCE_S
        )
