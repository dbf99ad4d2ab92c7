"""A TAP interface's MTU that the port's device cannot take, and the frames that such a device cuts. The kernel is real."""

from collections.abc import Iterator

import pytest
from harness.frames import ip4, ip6, on
from harness.wire import wait_until
from harness.wired import Port, WiredForwarder

SLOT_BYTES = 2048 - 66  # of net_af_packet's ring, without the header in front of the frame
MOST = SLOT_BYTES - 14 - 8  # IP bytes of a frame with two VLAN tags


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredForwarder]:
    """Two ports whose cables carry more than their devices' slots hold."""
    with WiredForwarder([Port("a"), Port("b")], linux={}) as made:
        far = made.wires["a"].end
        made.namespace.ip("link", "set", "dev", "a", "mtu", "9000")
        far.namespace.ip("link", "set", "dev", far.device, "mtu", "9000")
        yield made


def _tap_mtu(wired: WiredForwarder) -> int:
    return int(wired.dl3d.taps.ip("link", "show", "dev", "a").split(" mtu ")[1].split()[0])


def _port_mtu(wired: WiredForwarder) -> int:
    return int(wired.dl3d.call("ports")["ports"][0]["mtu"])


def _set_mtu(wired: WiredForwarder, mtu: int) -> None:
    wired.dl3d.taps.ip("link", "set", "dev", "a", "mtu", str(mtu))


def an_mtu_that_fits_is_the_ports(wired: WiredForwarder) -> None:
    _set_mtu(wired, MOST)
    wait_until(lambda: _port_mtu(wired) == MOST, "the port had the TAP interface's MTU")
    assert _tap_mtu(wired) == MOST
    _set_mtu(wired, 1500)
    wait_until(lambda: _port_mtu(wired) == 1500, "the port had its old MTU again")


@pytest.mark.parametrize("mtu", [MOST + 1, 9000, 65000])
def an_mtu_that_does_not_fit_is_refused(wired: WiredForwarder, mtu: int) -> None:
    _set_mtu(wired, mtu)
    wait_until(lambda: _tap_mtu(wired) == 1500, "the TAP interface had its old MTU again")
    wait_until(lambda: f"MTU {mtu}" in wired.dl3d.stderr, "the log named the MTU that was refused")
    (line,) = (line for line in wired.dl3d.stderr.splitlines() if f"MTU {mtu}" in line)
    assert "which is set back to 1500" in line
    assert f"at most {MOST}" in line
    assert _port_mtu(wired) == 1500
    assert not wired.dl3d.call("unsupported")["unsupported"]


LONG = {
    "ip4": on(0, ip4("10.2.0.1", payload=4000)),
    "ip6": on(0, ip6("2001:db8:22::1", payload=4000)),
    "one_byte": on(0, ip4("10.2.0.1", payload=SLOT_BYTES + 1 - 14 - 28)),
}
LONG["with_a_priority_tag"] = LONG["ip4"][:12] + bytes.fromhex("8100a000") + LONG["ip4"][12:]
LYING = on(0, ip4("10.2.0.1", len=47))


@pytest.mark.parametrize("name", LONG)
def a_frame_longer_than_its_slot_is_cut(wired: WiredForwarder, name: str) -> None:
    before = wired.account()
    wired.wires["a"].send(LONG[name])
    wired.wires["a"].send(LYING)
    after = wired.settle(before.received + 2).since(before)
    assert after.drops == {"frame_cut": 1, "ip4_length": 1}


@pytest.fixture(scope="module")
def tied() -> Iterator[WiredForwarder]:
    """Two ports that pass frames on to each other without routing them."""
    ports = [Port(name, keys={"mode": "xconnect", "to": other}) for name, other in ("ab", "ba")]
    with WiredForwarder(ports) as made:
        for name in "ab":
            far = made.wires[name].end
            made.namespace.ip("link", "set", "dev", name, "mtu", "9000")
            far.namespace.ip("link", "set", "dev", far.device, "mtu", "9000")
        yield made


@pytest.mark.parametrize("name", LONG)
def a_cut_frame_is_not_passed_on(tied: WiredForwarder, name: str) -> None:
    whole = on(0, ip4("10.2.0.1", payload=SLOT_BYTES - 14 - 28))
    before = tied.account()
    for frame in (LONG[name], whole, LYING):
        tied.wires["a"].send(frame)
    after = tied.settle(before.received + 3).since(before)
    assert after.drops == {"frame_cut": 1}
    assert [tied.wires["b"].receive(60.0) for _ in range(2)] == [whole, LYING]


def a_frame_as_long_as_its_slot_is_whole(wired: WiredForwarder) -> None:
    before = wired.account()
    wired.wires["a"].send(on(0, ip4("10.2.0.1", payload=SLOT_BYTES - 14 - 28)))
    after = wired.settle(before.received + 1).since(before)
    assert not {"frame_cut", "ip4_length"} & set(after.drops)
