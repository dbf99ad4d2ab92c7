"""Ports come and go while dl3gen sends over two others: no frame is lost there, and the account balances."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.answers import CORES, DL3GEN
from harness.frames import forwarded, ip4, on
from harness.wire import Wire, wait_until
from harness.wired import DL3D, Account, host_mac, port_mac

from dl3.control.generator import StreamResult
from dl3.lab.forwarder import Forwarder
from dl3.lab.generator import Generator
from dl3.lab.namespace import End, Lab
from dl3.lab.program import Surroundings
from dl3.model.fault import Fault

STEADY = ("a", "b")
FRAMES = 12_000
# The receive and transmit rings of the ports with traffic hold all frames of a run, so none is lost while another
# process has the core of a worker; af_packet counts no frame for which its ring had no place.
SLOTS = 16_384
assert SLOTS > FRAMES
MANY = 100
ROUTES = ["10.2.0.0/16 via 10.0.2.2 dev b", "10.3.0.0/16 via 10.0.3.2 dev c"]
NEIGHBOURS = [f"10.0.{n}.2 lladdr {host_mac(n - 1)} dev {name}" for n, name in ((2, "b"), (3, "c"))]
Change = Callable[["Bed", bool], None]


def _row(name: str, **keys: Any) -> dict[str, Any]:
    index = "abcd".index(name)
    slots = SLOTS if name in STEADY else 4096
    device = f"net_af_packet{index},iface={name},framecnt={slots}"
    return {"name": name, "device": device} | keys


def _static(name: str) -> dict[str, Any]:
    return _row(name, addresses=[f"10.0.{'abcd'.index(name) + 1}.1/24"])


class Bed:
    """dl3d with cables a and b to dl3gen, and c to a host; c is in the file but for the reloads."""

    def __init__(self, linux: bool = False) -> None:
        self.lab = Lab()
        try:
            self.inside = self.lab.namespace("dl3d", silent=True)
            self.far = self.lab.namespace("gen", silent=True)
            self.linux = linux
            self.wires: dict[str, Wire] = {}
            for index, name in enumerate("abc"):
                end = End(self.far, name, host_mac(index))
                self.lab.cable(End(self.inside, name, port_mac(index)), end)
                if name not in STEADY:
                    self.wires[name] = Wire(end)
            self.row = _row if linux else _static
            self.dl3d = Forwarder(DL3D, self._text("abc"), self.inside, linux={} if linux else None)
            self.dl3d.wait_ready()
            self.dl3gen = Generator(DL3GEN, self._generator(), Surroundings(namespace=self.far))
            self.dl3gen.wait_ready()
            for name in STEADY:
                self.wait_up(name)
            wait_until(lambda: all(port.link_up for port in self.dl3gen.results().ports), "dl3gen's ports were up")
        except BaseException:
            self.close()
            raise

    def _text(self, names: str) -> str:
        whole: dict[str, Any] = {
            "ports": [self.row(name) for name in names],
            "control": {"socket": "@SOCKET@"},
            "memory": {"hugepages": "never"},
        }
        if not self.linux:
            whole |= {
                "routes": [route for route in ROUTES if route[-1] in names],
                "neighbours": [line for line in NEIGHBOURS if line[-1] in names],
            }
        return yaml.safe_dump(whole, sort_keys=False)

    def _generator(self) -> str:
        ports = [
            {
                "name": name,
                "device": f"net_af_packet{i},iface={name},framecnt={SLOTS}",
                "addresses": [f"10.0.{i + 1}.2/24"],
            }
            for i, name in enumerate(STEADY)
        ]
        whole = {
            "ports": ports,
            "workers": [{"core": CORES[-1]}],
            "memory": {"hugepages": "never"},
            "control": {"socket": "@SOCKET@"},
        }
        return yaml.safe_dump(whole, sort_keys=False)

    def send(self, frames: int) -> None:
        """Numbered frames from a to b."""
        stream = {
            "from": "a",
            "to": "b",
            "dst_mac": self.port("a")["mac"],
            "src_ip": "10.0.1.2",
            "dst_ip": {"first": "10.2.0.1", "count": 100},
            "rate": "2 kpps",
            "frames": frames,
            "catch_up": 16384,
        }
        self.dl3gen.send(streams=[stream])

    def is_sending(self) -> bool:
        return self.dl3gen.results().state == "sending"

    def finish(self) -> StreamResult:
        """The result when all frames are back, or none has come for a long time."""
        self.dl3gen.finish(stragglers_s=0, timeout_s=300)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: self.dl3gen.results().streams[0].lost == 0, "all frames were back")
        (stream,) = self.dl3gen.results().streams
        return stream

    def reload(self, names: str, by_signal: bool = False) -> None:
        """Write a file with these ports, and have it read."""
        text = self._text(names).replace("@SOCKET@", str(self.dl3d.socket))
        self.dl3d.file.write_text(text + ("linux: {keep: false}\n" if self.linux else ""))
        if by_signal:
            before = self.dl3d.call("status")["reloads"]
            self.dl3d.process.send_signal(signal.SIGHUP)
            wait_until(lambda: self.dl3d.call("status")["reloads"] == before + 1, "the file was read")
        else:
            self.dl3d.call("reload")

    def port(self, name: str) -> dict[str, Any]:
        (found,) = [row for row in self.dl3d.call("ports")["ports"] if row["name"] == name]
        return dict(found)

    def has_port(self, name: str) -> bool:
        return any(row["name"] == name for row in self.dl3d.call("ports")["ports"])

    def wait_up(self, name: str) -> None:
        wait_until(lambda: bool(self.port(name)["link_up"]), f"port {name} was up")

    def account(self) -> Account:
        return Account.of(self.dl3d.call("drops"))

    def wait_balanced(self) -> Account:
        wait_until(lambda: self.account().is_closed, "the account balanced")
        return self.account()

    def close(self) -> None:
        for program in ("dl3gen", "dl3d"):
            if hasattr(self, program):
                getattr(self, program).close()
        for wire in self.wires.values():
            wire.close()
        self.lab.close()


@pytest.fixture
def bed() -> Iterator[Bed]:
    made = Bed()
    yield made
    made.close()


def _by_method(bed: Bed, is_there: bool) -> None:
    if is_there:
        added = bed.dl3d.call("ports.add", **bed.row("c"))["added"]
        assert (added["name"], added["rx_packets"], added["tx_packets"]) == ("c", 0, 0)
    else:
        assert bed.dl3d.call("ports.remove", name="c")["removed"] == "c"


def _by_reload(bed: Bed, is_there: bool) -> None:
    bed.reload("abc" if is_there else "ab")


def _by_signal(bed: Bed, is_there: bool) -> None:
    bed.reload("abc" if is_there else "ab", by_signal=True)


def _come_and_go(bed: Bed, change: Change, least: int) -> int:
    """Remove and add port c until dl3gen has sent all, but `least` times."""
    n = 0
    while n < least or bed.is_sending():
        change(bed, False)
        assert not bed.has_port("c")
        change(bed, True)
        bed.wait_up("c")
        n += 1
    return n


def _check_nothing_lost(bed: Bed, frames: int) -> None:
    stream = bed.finish()
    assert (stream.sent, stream.lost, stream.corrupted, stream.duplicated) == (frames, 0, 0, 0), stream
    account = bed.wait_balanced()
    assert account.sent >= frames
    assert bed.port("b")["tx_packets"] == frames
    assert bed.dl3d.stop() == 0, bed.dl3d.stderr


@pytest.mark.parametrize("change", [_by_method, pytest.param(_by_reload, marks=pytest.mark.long), _by_signal])
def other_ports_lose_no_frame_while_a_port_comes_and_goes(bed: Bed, change: Change) -> None:
    bed.send(FRAMES)
    _come_and_go(bed, change, 3)
    _check_nothing_lost(bed, FRAMES)


def _n_files(bed: Bed) -> int:
    return sum(1 for _ in Path(f"/proc/{bed.dl3d.call('status')['pid']}/fd").iterdir())


@pytest.mark.long
def a_port_comes_and_goes_a_hundred_times_under_traffic(bed: Bed) -> None:
    """dl3d keeps its memory and its descriptors."""
    _come_and_go(bed, _by_method, 1)
    before = bed.dl3d.call("status")["memory"]
    files = _n_files(bed)
    bed.send(FRAMES)
    n = _come_and_go(bed, _by_method, MANY)
    assert n >= MANY
    assert bed.dl3d.call("status")["memory"]["mbufs"] == before["mbufs"]
    wait_until(lambda: _n_files(bed) <= files, "no descriptor was left behind")
    _check_nothing_lost(bed, FRAMES)


def _arrives_on_c(bed: Bed) -> bool:
    """A frame that c sends to a route over itself comes back, perhaps among others from Linux."""
    frame = on(2, ip4("10.3.0.1"))
    found: list[bytes] = []

    def is_back() -> bool:
        bed.wires["c"].send(frame)  # again: the port may be served later than its routes are
        found.extend(bed.wires["c"].drain())
        return forwarded(frame, 2) in found

    bed.wires["c"].drain()
    wait_until(is_back, "the frame came back")
    return True


def next_hops_over_a_removed_port_are_unresolved_and_named_until_it_returns(bed: Bed) -> None:
    assert _arrives_on_c(bed)
    gone = bed.dl3d.call("ports.remove", name="c")
    assert (gone["routes_without_next_hop"], gone["routes_with_fewer_next_hops"]) == (1, 0)
    route = bed.dl3d.call("route", address="10.3.0.1")
    assert (route["verdict"], route["port"]) == ("neighbour_unresolved", "c")
    # Another port does not get the routes, and the same device may have another name meanwhile.
    other = bed.dl3d.call("ports.add", **(_row("c") | {"name": "other"}))["added"]
    assert other["port"] == 3
    assert bed.dl3d.call("route", address="10.3.0.1")["verdict"] == "neighbour_unresolved"
    bed.dl3d.call("ports.remove", name="other")
    back = bed.dl3d.call("ports.add", **bed.row("c"))["added"]
    assert back["port"] == 2
    bed.wait_up("c")
    assert _arrives_on_c(bed)
    assert bed.port("c")["tx_packets"] == 1  # since it was added
    bed.wait_balanced()


def frames_to_a_port_that_goes_are_counted(bed: Bed) -> None:
    """c sends to itself all the time; each frame that dl3d has received is accounted for."""
    for _ in range(5):
        for number in range(64):
            bed.wires["c"].send(on(2, ip4("10.3.0.1", payload=20 + number)))
        bed.dl3d.call("ports.remove", name="c")
        bed.dl3d.call("ports.add", **bed.row("c"))
        bed.wait_up("c")
    account = bed.wait_balanced()
    assert set(account.drops) <= {"port_down", "tx_refused", "neighbour_unresolved", "no_route"}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("ports.add", _static("a"), 'port "a" exists already; remove it first, or choose another name'),
    ("ports.add", {"name": "n", "device": "net_af_packet9,iface=nowhere"}, "interface nowhere does not exist"),
    ("ports.add", {"name": "n", "device": "net_nothing9"}, "DPDK cannot attach its device net_nothing9"),
    ("ports.add", {"name": "n", "device": "0000:ff:1f.7"}, "restart"),
    ("ports.add", {"name": "n", "device": "net_null9", "mtu": 67}, 'port.mtu: found "67", expected a number from 68'),
    ("ports.add", {"name": "n", "device": "net_null9", "mtu": 9000}, "exceeds the buffers allocated at start"),
    ("ports.add", {"name": "n", "device": "net_null9", "color": "red"}, 'unknown key "port.color"'),
    ("ports.add", {"name": "n", "device": "net_null9", "addresses": ["10.2.0.1/16"]}, "cannot add the addresses"),
    ("ports.remove", {"name": "n"}, 'unknown port "n"; expected one of a, b, c'),
]


def refuses_in_one_sentence_and_changes_nothing(bed: Bed) -> None:
    before = bed.dl3d.call("ports")["ports"]
    for method, params, words in REFUSED:
        with pytest.raises(Fault) as fault:
            bed.dl3d.call(method, **params)
        assert words in str(fault.value), method
        after = bed.dl3d.call("ports")["ports"]
        assert [row["name"] for row in after] == [row["name"] for row in before]
    assert _arrives_on_c(bed)


def _many(first: int, n: int) -> str:
    ports = [
        {"name": f"n{i}", "device": f"net_null{i},no-rx=1", "rx_descriptors": 64, "tx_descriptors": 64}
        for i in range(first, first + n)
    ]
    whole = {"ports": ports, "memory": {"hugepages": "never"}, "control": {"socket": "@SOCKET@"}}
    return yaml.safe_dump(whole, sort_keys=False)


def _most_ports(folder: Path) -> int:
    """What the installed DPDK was built for, as dl3d says."""
    file = folder / "many.yaml"
    file.write_text(_many(0, 256).replace("@SOCKET@", str(folder / "socket")))
    done = subprocess.run([DL3D, "--check", file], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0:
        pytest.skip("this DPDK was built for 256 ports")
    (line,) = done.stderr.splitlines()
    found = re.search(
        r"ports: 256 configured, but DPDK was built for at most (\d+); remove some, or use a DPDK built", line
    )
    assert found, line
    return int(found[1])


def more_ports_than_dpdk_was_built_for_change_nothing(tmp_path: Path) -> None:
    most = _most_ports(tmp_path)
    dl3d = Forwarder(DL3D, _many(0, most))
    try:
        dl3d.wait_ready()
        before = [row["name"] for row in dl3d.call("ports")["ports"]]
        assert len(before) == most
        with pytest.raises(Fault, match=rf"more\): DPDK was built for at most {most} ports, and all are in use"):
            dl3d.call("ports.add", name="more", device="net_null999")
        for text in (_many(0, most + 1), _many(1, most)):
            dl3d.file.write_text(text.replace("@SOCKET@", str(dl3d.socket)))
            with pytest.raises(Fault, match=f"DPDK was built for at most {most}"):
                dl3d.call("reload")
            assert [row["name"] for row in dl3d.call("ports")["ports"]] == before
        dl3d.call("ports.remove", name="n0")
        assert dl3d.call("ports.add", name="more", device="net_null999,no-rx=1")["added"]["name"] == "more"
        assert dl3d.stop() == 0, dl3d.stderr
    finally:
        dl3d.close()


def the_last_port_stays(bed: Bed) -> None:
    for name in "cb":
        bed.dl3d.call("ports.remove", name=name)
    with pytest.raises(Fault, match='port "a" is the only one'):
        bed.dl3d.call("ports.remove", name="a")


def with_linux_the_tap_comes_and_goes_with_its_port() -> None:
    """Addresses and routes go with the interface, as in Linux, and are configured again as on any new one."""
    bed = Bed(linux=True)
    try:
        taps = bed.dl3d.taps
        for number, name in enumerate("abc", 1):
            taps.ip("address", "add", f"10.0.{number}.1/24", "dev", name)
        taps.ip("neighbour", "add", "10.0.2.2", "lladdr", host_mac(1), "dev", "b")
        taps.ip("route", "add", "10.2.0.0/16", "via", "10.0.2.2")

        def configure() -> None:
            taps.ip("neighbour", "replace", "10.0.3.2", "lladdr", host_mac(2), "dev", "c")
            taps.ip("route", "replace", "10.3.0.0/16", "via", "10.0.3.2")

        def verdict(address: str) -> str:
            return str(bed.dl3d.call("route", address=address)["verdict"])

        configure()
        wait_until(lambda: verdict("10.2.0.1") == verdict("10.3.0.1") == "forward", "the routes were followed")
        bed.send(FRAMES // 2)
        for _ in range(3):
            assert bed.dl3d.call("ports.remove", name="c")["routes_without_next_hop"] >= 1
            assert "c:" not in taps.ip("link", "show")
            assert "10.3.0.0" not in taps.ip("route", "show")
            wait_until(lambda: verdict("10.3.0.1") == "no_route", "the route was gone")
            bed.dl3d.call("ports.add", **bed.row("c"))
            assert "10.0.3.1" not in taps.ip("address", "show", "dev", "c")
            bed.wait_up("c")
            taps.ip("address", "add", "10.0.3.1/24", "dev", "c")
            configure()
            wait_until(lambda: verdict("10.3.0.1") == "forward", "the route was followed again")
            assert _arrives_on_c(bed)
        stream = bed.finish()
        assert (stream.sent, stream.lost) == (FRAMES // 2, 0), stream

        def is_level() -> bool:
            with contextlib.suppress(Fault):  # while tables change, nobody can tell
                return bool(bed.dl3d.call("verify")["differences"] == 0)
            return False

        wait_until(is_level, "workers had all that Linux has")
        bed.wait_balanced()
        assert bed.dl3d.stop() == 0, bed.dl3d.stderr
    finally:
        bed.close()
