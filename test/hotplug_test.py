"""A port's device vanishes and returns while dl3d runs: the port is down meanwhile, the others carry every packet."""

import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness.frames import forwarded, ip4, on
from harness.wire import wait_until
from harness.wired import TOP, Port, WiredForwarder, host_mac, port_mac

NEIGHBOURS = [f"10.0.{n}.2 lladdr {host_mac(n - 1)} dev {name}" for n, name in ((2, "b"), (3, "c"))]
STATIC = {
    "routes": ["10.2.0.0/16 via 10.0.2.2 dev b", "10.3.0.0/16 via 10.0.3.2 dev c"],
    "neighbours": NEIGHBOURS,
}
AT_ONCE = 32  # frames in flight, fewer than any ring holds
PATIENCE_S = 60.0


@pytest.fixture
def wired() -> Iterator[WiredForwarder]:
    """Ports a, b and c."""
    with WiredForwarder([Port("a"), Port("b"), Port("c")], **STATIC) as made:
        yield made


def _port(wired: WiredForwarder, name: str) -> dict[str, Any]:
    (row,) = [row for row in wired.dl3d.call("ports")["ports"] if row["name"] == name]
    return dict(row)


def _wait_vanished(wired: WiredForwarder, name: str) -> None:
    wait_until(lambda: not _port(wired, name)["device_present"], f"the device of {name} had vanished")
    assert not _port(wired, name)["link_up"]


def _is_back(wired: WiredForwarder, name: str, losses: int) -> bool:
    row = _port(wired, name)
    return bool(row["device_present"] and row["link_up"] and row["device_losses"] == losses)


def _wait_back(wired: WiredForwarder, name: str, losses: int = 1) -> None:
    wait_until(lambda: _is_back(wired, name, losses), f"the device of {name} had returned")


class _Flow:
    """Frames from a to b; the next ones are sent when the last ones have arrived."""

    def __init__(self, wired: WiredForwarder) -> None:
        self._source, self._sink = wired.wires["a"], wired.wires["b"]
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()
        self.n = 0
        self.lost = 0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def progress(self) -> None:
        """Wait until frames sent from now on have arrived."""
        before = self.n
        wait_until(lambda: self.n >= before + 2 * AT_ONCE or self.lost > 0, "b had received more frames")

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set() and not self.lost:
            frames = [on(0, ip4(f"10.2.{number >> 8 & 255}.{number & 255}", payload=20 + i)) for i in range(AT_ONCE)]
            for frame in frames:
                self._source.send(frame)
            arrived = [self._sink.receive(PATIENCE_S) for _ in frames]
            self.lost += sum(got != forwarded(sent, 1) for got, sent in zip(arrived, frames, strict=True))
            self.n += len(frames)
            number += 1


@contextmanager
def _flow(wired: WiredForwarder) -> Iterator[_Flow]:
    flow = _Flow(wired)
    flow.start()
    try:
        flow.progress()
        yield flow
        flow.progress()
    finally:
        flow.end()
    assert flow.lost == 0


def _arrives_on_c(wired: WiredForwarder) -> bool:
    frame = on(0, ip4("10.3.0.1"))
    wired.wires["a"].send(frame)
    return wired.wires["c"].receive(PATIENCE_S) == forwarded(frame, 2)


def _shown_links(wired: WiredForwarder) -> dict[str, str]:
    """The link of each port as printed for people: columns are two spaces apart."""
    command = [str(TOP / "bin" / "dl3"), "show", "ports", "--socket", str(wired.dl3d.socket)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    rows = [re.split(r" {2,}", line.strip()) for line in done.stdout.split("\n\n")[0].splitlines()]
    return {row[0]: row[1] for row in rows if row[0] in wired.wires or row[0] == "c"}


def a_device_that_vanishes_takes_down_its_port_and_no_other(wired: WiredForwarder) -> None:
    assert _arrives_on_c(wired)
    with _flow(wired) as flow:
        wired.cut("c")
        _wait_vanished(wired, "c")
        flow.progress()
        for _ in range(AT_ONCE):
            wired.wires["a"].send(on(0, ip4("10.3.0.1")))
        wait_until(lambda: wired.account().drops == {"port_down": AT_ONCE}, "packets to c were dropped")
        assert _shown_links(wired) == {"a": "up", "b": "up", "c": "no device"}
        wired.lay_again("c")
        _wait_back(wired, "c")
        flow.progress()
    assert _arrives_on_c(wired)
    account = wired.settle(flow.n + AT_ONCE + 2)
    assert account.drops == {"port_down": AT_ONCE}
    assert account.sent == flow.n + 2
    assert _port(wired, "c")["tx_packets"] == 2
    assert _port(wired, "c")["mac"] == port_mac(2)
    log = [line for line in wired.dl3d.stderr.splitlines() if "port c" in line]
    assert "port c: its device net_af_packet2 has vanished (removed or reset); the port is down" in "\n".join(log)
    assert "dl3d: port c: its device net_af_packet2 is back" in log
    assert wired.dl3d.stop() == 0


def a_device_can_return_before_anybody_has_noticed(wired: WiredForwarder) -> None:
    with _flow(wired):
        for losses in range(1, 4):
            wired.cut("c")
            wired.lay_again("c")
            _wait_back(wired, "c", losses)
    assert _arrives_on_c(wired)


def a_device_that_was_in_another_namespace_returns(wired: WiredForwarder) -> None:
    there = wired.lab.namespace("elsewhere")
    with _flow(wired):
        wired.namespace.ip("link", "set", "dev", "c", "netns", there.name)
        _wait_vanished(wired, "c")
        there.ip("link", "set", "dev", "c", "netns", wired.namespace.name)
        wired.namespace.ip("link", "set", "dev", "c", "arp", "off", "up")
        _wait_back(wired, "c")
    assert _arrives_on_c(wired)


def a_device_may_get_another_name(wired: WiredForwarder) -> None:
    wired.namespace.ip("link", "set", "dev", "c", "down")
    wired.namespace.ip("link", "set", "dev", "c", "name", "other")
    wired.namespace.ip("link", "set", "dev", "other", "up")
    wait_until(lambda: bool(_port(wired, "c")["link_up"]), "the link was up")
    assert _arrives_on_c(wired)
    assert _port(wired, "c")["device_losses"] == 0


class _Flood:
    """Frames from a to c, whether it is there or not; the next ones are sent when dl3d has received the last ones."""

    def __init__(self, wired: WiredForwarder) -> None:
        self._wired = wired
        self._thread = threading.Thread(target=self._run)
        self._stop = threading.Event()
        self.n_sent = 0

    def __enter__(self) -> "_Flood":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _are_received(self) -> bool:
        return self._wired.account().received >= self.n_sent

    def _run(self) -> None:
        while not self._stop.is_set():
            for _ in range(AT_ONCE):
                self._wired.wires["a"].send(on(0, ip4("10.3.0.1")))
            self.n_sent += AT_ONCE
            wait_until(self._are_received, "dl3d had received the frames")


def packets_that_are_sent_to_a_device_while_it_vanishes_are_accounted_for(wired: WiredForwarder) -> None:
    with _Flood(wired) as flood:
        for losses in range(1, 4):
            wired.cut("c")
            _wait_vanished(wired, "c")
            wired.lay_again("c")
            _wait_back(wired, "c", losses)
    account = wired.settle(flood.n_sent)
    assert account.received == flood.n_sent
    assert set(account.drops) <= {"port_down", "tx_refused"}
    assert account.sent == _port(wired, "c")["tx_packets"]
    wired.wires["c"].drain()
    assert _arrives_on_c(wired)


def _shows(wired: WiredForwarder, tap: str, words: str) -> Callable[[], bool]:
    return lambda: words in wired.dl3d.taps.ip("link", "show", "dev", tap)


def a_tap_has_no_carrier_while_the_device_of_its_port_is_gone() -> None:
    ports = [Port("a"), Port("b"), Port("c")]
    with WiredForwarder(ports, linux={}) as wired:
        taps = wired.dl3d.taps
        for tap in "abc":
            wait_until(_shows(wired, tap, "LOWER_UP"), "the TAP interfaces had carrier")
        taps.ip("link", "add", "vrrp", "link", "c", "up", "type", "macvlan", "mode", "private")
        wired.cut("c")
        wait_until(_shows(wired, "c", "NO-CARRIER"), "the TAP interface had lost carrier")
        assert _shows(wired, "b", "LOWER_UP")()
        wait_until(lambda: not _port(wired, "c")["device_present"], "the device was gone")
        # What Linux sets meanwhile applies to the device that returns.
        taps.ip("link", "set", "dev", "c", "address", "02:00:00:00:0c:0c", "mtu", "1400")
        wait_until(lambda: _port(wired, "c")["mtu"] == 1400, "the MTU was known")
        wired.lay_again("c")
        wait_until(_shows(wired, "c", "LOWER_UP"), "the TAP interface had carrier again")
        device = wired.namespace.ip("link", "show", "dev", "c")
        assert "PROMISC" in device
        assert "02:00:00:00:0c:0c" in device
        assert "PROMISC" not in wired.namespace.ip("link", "show", "dev", "b")
        assert wired.dl3d.stop() == 0


def a_device_that_makes_its_interface_itself_returns_with_a_reload() -> None:
    tap = Port("c", device="net_tap2,iface=dtap2", keys={"mac": port_mac(2)})
    with WiredForwarder([Port("a"), Port("b"), tap], **STATIC) as wired:
        wired.namespace.ip("link", "set", "dev", "dtap2", "up")
        wait_until(lambda: bool(_port(wired, "c")["link_up"]), "the link was up")
        with _flow(wired) as flow:
            wired.namespace.ip("link", "delete", "dev", "dtap2")
            _wait_vanished(wired, "c")
            flow.progress()
            wired.dl3d.call("reload")
            wired.namespace.ip("link", "set", "dev", "dtap2", "up")
            _wait_back(wired, "c")
        assert "returns with `dl3 reload`" in wired.dl3d.stderr
        assert wired.dl3d.stop() == 0


def a_device_that_does_not_fit_is_told_of_once_and_tried_again(wired: WiredForwarder) -> None:
    wired.cut("c")
    _wait_vanished(wired, "c")
    # A macvlan cannot have a larger MTU than the interface below it.
    wired.namespace.ip("link", "add", "below", "mtu", "1400", "type", "veth", "peer", "name", "below2")
    wired.namespace.ip("link", "add", "name", "c", "link", "below", "mtu", "1400", "type", "macvlan")
    wait_until(lambda: "interface c rejected mtu 1500" in wired.dl3d.stderr, "dl3d had refused it")
    with _flow(wired):
        wired.namespace.ip("link", "delete", "dev", "c")
        wired.lay_again("c")
        _wait_back(wired, "c")
    assert wired.dl3d.stderr.count("interface c rejected mtu 1500") == 1
    assert _arrives_on_c(wired)
