"""Subscribers whose packets wait in queues of a running dl3d: order, counts, changes, and what a stop leaves."""

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from harness.answers import CORES
from harness.frames import Packet, ip4, on
from harness.subscribers import run_job
from harness.wire import wait_until
from harness.wired import TOP, Account, Port, WiredForwarder
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from dl3.model.fault import Fault

PORTS = [Port(name, keys={"addresses": [f"10.0.{i + 1}.1/24"]}) for i, name in enumerate("ab")]
ROUTES = {"routes": ["10.2.0.0/16 via 10.0.2.2 dev b"], "neighbours": ["10.0.2.2 lladdr 02:00:00:00:01:02 dev b"]}
NEVER = "queue codel target 10s interval 10s limit 10s"  # CoDel and the limit drop nothing
QOS: dict[str, Any] = {
    "held_packets": 4096,
    "profiles": [
        "olt aggregate 1Gbit/s",
        f"slow shape 64kbit/s burst 3076B {NEVER}",
        f"fast shape 20Mbit/s burst 20kB class_dscp 46:0,10:1 {NEVER}",
    ],
    "subscribers": ["alice down fast parent olt address 10.2.1.1", "bob down slow address 10.2.2.2"],
}
# The cores of the workers: the last one owns the shaper, so each packet from a is handed to it.
WORKERS = [{"core": CORES[0], "queues": ["a/0"]}, {"core": CORES[-1], "queues": ["b/0"]}]
# Both own a shaper: that of olt, an aggregate without parent, and of bob's queues.
OWNERS = [{**worker, "shapes": "on"} for worker in WORKERS]
SENT, FEW, SIZE, PATIENCE_S = 300, 120, 200, 120.0
EXPEDITED, BULK, PLAIN = 46 << 2, 10 << 2, 0


@pytest.fixture(
    params=[pytest.param(None, marks=pytest.mark.long), pytest.param(WORKERS, marks=pytest.mark.long), OWNERS],
    ids=["one worker", "two workers", "two owners"],
)
def wired(request: pytest.FixtureRequest) -> Iterator[WiredForwarder]:
    workers = {"workers": request.param} if request.param else {"workers": [{"core": CORES[0]}]}
    with WiredForwarder(PORTS, qos=QOS, **ROUTES, **workers) as made:
        yield made


def _packets(dst: str, n: int = SENT) -> list[Packet]:
    """Packets of three classes in turns; their lengths grow."""
    return [ip4(dst, SIZE + i, tos=(EXPEDITED, BULK, PLAIN)[i % 3]) for i in range(n)]


def _send(wired: WiredForwarder, packets: list[Packet]) -> None:
    wired.send_all([on(0, packet) for packet in packets])


def _all_came(wired: WiredForwarder, n: int) -> list[Packet]:
    came: list[Packet] = []

    def has_all() -> bool:
        came.extend(packet[IP] for packet in map(Ether, wired.wires["b"].drain()) if IP in packet)
        return len(came) >= n

    wait_until(has_all, f"{n} packets had come out", PATIENCE_S)
    return came


def _shaping(wired: WiredForwarder, name: str, way: str = "down") -> dict[str, Any]:
    shaping: dict[str, Any] = wired.dl3d.call("subscribers.find", name=name)[way]["shaping"]
    return shaping


def each_class_keeps_its_order_and_all_packets_are_counted(wired: WiredForwarder) -> None:
    packets = _packets("10.2.1.1")
    _send(wired, packets)
    came = _all_came(wired, SENT)
    for tos in (EXPEDITED, BULK, PLAIN):
        assert [one.len for one in came if one.tos == tos] == [len(one) for one in packets if one.tos == tos]
    account = wired.settle(SENT)
    assert (account.held, account.drops) == (0, {})
    shaping = _shaping(wired, "alice")
    assert [one["packets"] for one in shaping["classes"]] == [SENT // 3, SENT // 3, 0, SENT // 3]
    bytes_of = [sum(len(one) + 18 for one in packets if one.tos == tos) for tos in (EXPEDITED, BULK, PLAIN)]
    assert [shaping["classes"][i]["bytes"] for i in (0, 1, 3)] == bytes_of
    assert all(sum(one["delays"]) == one["packets"] for one in shaping["classes"])
    assert wired.dl3d.call("subscribers.find", name="alice")["down"]["parent"] == "olt"
    shown = subprocess.run(
        [TOP / "bin" / "dl3", "show", "subscriber", "alice", "--socket", str(wired.dl3d.socket)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 0, shown.stderr
    assert f"Held in queues of worker {shaping['worker']} now: 0 packets" in shown.stdout


def what_waits_is_held_and_leaves_when_the_rate_is_raised(wired: WiredForwarder) -> None:
    _send(wired, _packets("10.2.2.2", FEW))
    account = wired.account()
    assert account.is_closed
    assert account.held > 0
    assert _shaping(wired, "bob")["held"] > 0
    assert wired.dl3d.call("subscribers.change", changes=["set bob down fast parent olt"]) == {"applied": 1}
    assert len(_all_came(wired, FEW)) == FEW
    account = wired.settle(FEW)
    assert (account.held, account.drops) == (0, {})


def packets_between_subscribers_wait_upstream_and_downstream(wired: WiredForwarder) -> None:
    carol = "add carol number 4 up fast address 10.0.1.2"
    assert wired.dl3d.call("subscribers.change", changes=[carol]) == {"applied": 1}
    packets = _packets("10.2.1.1")
    _send(wired, packets)
    came = _all_came(wired, SENT)
    for tos in (EXPEDITED, BULK, PLAIN):
        assert [one.len for one in came if one.tos == tos] == [len(one) for one in packets if one.tos == tos]
    account = wired.settle(SENT)
    assert (account.held, account.drops) == (0, {})
    for shaping in (_shaping(wired, "carol", "up"), _shaping(wired, "alice")):
        assert [one["packets"] for one in shaping["classes"]] == [SENT // 3, SENT // 3, 0, SENT // 3]
    assert _shaping(wired, "carol") is None


def who_is_removed_loses_what_waits_by_name(wired: WiredForwarder) -> None:
    _send(wired, _packets("10.2.2.2", FEW))
    wired.dl3d.call("subscribers.change", changes=["remove bob"])
    wait_until(lambda: wired.account().held == 0, "nothing was held", PATIENCE_S)
    account = wired.settle(FEW)
    assert account.drops == {"shape_flushed": FEW - account.sent}
    assert account.drops["shape_flushed"] > 0


def a_stop_drops_what_waits_by_name(wired: WiredForwarder) -> None:
    _send(wired, _packets("10.2.2.2", FEW))
    assert wired.dl3d.stop() == 0, wired.dl3d.stderr
    closed = re.search(r"received (\d+), sent (\d+), dropped (\d+), in flight (-?\d+)", wired.dl3d.stderr)
    assert closed, wired.dl3d.stderr
    received, sent, dropped, in_flight = map(int, closed.groups())
    assert (received, in_flight) == (FEW, 0)
    assert received == sent + dropped
    assert f"account: {dropped} shape_flushed" in wired.dl3d.stderr


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["set alice parent nobody"], 'parent: there is no profile "nobody"; add it first'),
        (["set alice up_parent olt"], 'up_parent: it needs a profile with shape; add "up PROFILE"'),
        (["profile olt aggregate 1Mbit/s"], "shapes to 20Mbit/s, which is above 1Mbit/s of the parent 'olt'"),
        (["profile slow shape 64kbit/s burst 100B"], 'burst is "100B"; expected 1518B'),
    ],
)
def a_mistake_changes_nothing(changes: list[str], sentence: str) -> None:
    with WiredForwarder(PORTS, qos=QOS, **ROUTES) as wired:
        before = wired.dl3d.call("subscribers")["profile_list"]
        with pytest.raises(Fault, match=re.escape(sentence)) as caught:
            wired.dl3d.call("subscribers.change", changes=["set bob down none", *changes])
        assert "\n" not in str(caught.value)
        assert wired.dl3d.call("subscribers")["profile_list"] == before
        assert wired.dl3d.call("subscribers.find", name="bob")["down"]["profile"] == "slow"


def an_export_can_be_loaded_again() -> None:
    with WiredForwarder(PORTS, qos=QOS, **ROUTES) as wired:
        file = wired.dl3d.folder / "customers"
        wired.dl3d.call("subscribers.change", changes=["profile a aggregate 2Mbit/s parent olt"])
        run_job(wired.dl3d, "subscribers.export", path=str(file))
        before = wired.dl3d.call("subscribers")["profile_list"]
        assert "alice number 1 down fast parent olt address 10.2.1.1/32 #" in file.read_text()
        run_job(wired.dl3d, "subscribers.load", path=str(file))
        assert wired.dl3d.call("subscribers")["profile_list"] == before


def without_the_key_nothing_may_shape() -> None:
    qos = {"profiles": ["p rate 1Mbit/s"]}
    with WiredForwarder(PORTS, qos=qos, **ROUTES) as wired:
        with pytest.raises(Fault, match=r"shape needs the key qos.held_packets in the configuration file"):
            wired.dl3d.call("subscribers.change", changes=["profile p shape 1Mbit/s"])
        _send(wired, _packets("10.2.1.1", 10))
        assert Account.of(wired.dl3d.call("drops")).held == 0
