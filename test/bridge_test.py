"""Bridges of dl3d: hosts that talk through one, and Linux's bridge as control for random frames."""

import hashlib
import os
import random
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from harness.wire import Wire, wait_until
from harness.wired import DL3D, Port, WiredForwarder, config_text, host_mac, port_mac, settled

from dl3.lab.forwarder import Forwarder
from dl3.lab.namespace import End, Lab, Namespace

NAMES = ("a", "b", "c", "d")
BROADCAST = bytes([255] * 6)
MULTICAST = bytes.fromhex("01005e000001")
ETHERTYPE = bytes.fromhex("88b5")
BYTES = 1 << 20


def _mac_bytes(text: str) -> bytes:
    """The six bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))


def _frame(dst: bytes, src: bytes, number: int) -> bytes:
    """A frame that carries its number."""
    return dst + src + ETHERTYPE + struct.pack("!I", number) + bytes(42)


def _number_of(received: bytes) -> int:
    """The number of a frame, which may be tagged."""
    at = received.index(ETHERTYPE, 12) + 2
    return int(struct.unpack("!I", received[at : at + 4])[0])


def _macs_of(dl3d: Forwarder) -> dict[str, str]:
    """Which port each MAC address is behind."""
    return {row["mac"]: row["port"] for row in dl3d.call("macs", limit=5000)["macs"]}


@dataclass
class Hosts:
    """A dl3d that bridges three hosts."""

    lab: Lab
    dl3d: Forwarder
    hosts: list[Namespace] = field(default_factory=list)

    def address(self, index: int) -> str:
        """The IPv4 address of a host."""
        return f"10.0.0.{index + 1}"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Lab() as lab:
        middle = lab.namespace("dl3d", silent=True)
        found = [lab.namespace(name) for name in NAMES[:3]]
        ports = [Port(name) for name in NAMES[:3]]
        for index, (host, port) in enumerate(zip(found, ports, strict=True)):
            lab.cable(End(middle, port.name, port_mac(index)), End(host, "eth0", host_mac(index)))
            host.ip("address", "add", f"10.0.0.{index + 1}/24", "dev", "eth0")
        bridge = {"name": "br0", "ports": list(NAMES[:3])}
        with Forwarder(DL3D, config_text(ports, bridges=[bridge]), middle) as dl3d:
            dl3d.wait_ready()
            yield Hosts(lab, dl3d, found)


def hosts_ping_each_other(hosts: Hosts) -> None:
    for index, host in enumerate(hosts.hosts):
        for other in range(3):
            if other != index:
                host.run("ping", "-c", "2", "-W", "20", hosts.address(other))
    wait_until(
        lambda: _macs_of(hosts.dl3d).items() >= {host_mac(i): NAMES[i] for i in range(3)}.items(),
        "the bridge knew all hosts",
    )
    account = settled(hosts.dl3d, 24)
    assert account.copied > 0
    assert account.drops.keys() <= {"bridge_reserved"}


def _serve(listener: socket.socket, digests: list[str]) -> None:
    """Reads one connection to its end."""
    with listener.accept()[0] as peer:
        digest = hashlib.sha256()
        while data := peer.recv(1 << 16):
            digest.update(data)
        digests.append(digest.hexdigest())


def tcp_carries_a_megabyte_whole(hosts: Hosts) -> None:
    data, digests = random.Random(1).randbytes(BYTES), list[str]()
    with hosts.hosts[1].entered():
        listener = socket.create_server((hosts.address(1), 5001))
    reader = threading.Thread(target=_serve, args=(listener, digests))
    reader.start()
    with hosts.hosts[0].entered():
        client = socket.socket()
    with client:
        client.settimeout(60)
        client.connect((hosts.address(1), 5001))
        client.sendall(data)
    reader.join(60)
    listener.close()
    assert digests == [hashlib.sha256(data).hexdigest()]


@dataclass
class Both:
    """Linux's bridge and dl3d, each with a host's wire at each of its four ports."""

    wired: WiredForwarder
    kernel: Namespace
    control: dict[str, Wire]
    number: int = 0
    attributes: dict[str, dict[str, bool]] = field(default_factory=dict)
    behind: dict[bytes, str] = field(default_factory=dict)  # where a host sent its latest frame

    def change(self, port: str, **attributes: bool) -> None:
        """Set attributes of a port of both."""
        self.attributes.setdefault(port, {}).update(attributes)
        words = [word for name, on in attributes.items() for word in (name, "on" if on else "off")]
        self.kernel.ip("link", "set", "dev", port, "type", "bridge_slave", *words)
        file = self.wired.dl3d.file
        file.write_text(_text_of(self.wired.ports, self.attributes).replace("@SOCKET@", str(self.wired.dl3d.socket)))
        self.wired.dl3d.call("reload")

    def send(self, port: str, frames: list[bytes]) -> None:
        """Send frames on a port of both; the same ones must arrive at the same ports of both."""
        before = self.wired.account()
        for one in frames:
            self.wired.wires[port].send(one)
            self.control[port].send(one)
        self.wired.settle(before.received + len(frames))
        ours, theirs = self.received(self.wired.wires), self.received(self.control)
        sent = self.wired.account().since(before).sent
        wait_until(lambda: sum(map(len, self.add(ours, self.wired.wires).values())) == sent, "all frames had come out")
        wait_until(lambda: self.add(theirs, self.control) == ours or self.is_more(theirs, ours), "Linux's as well")
        assert ours == theirs

    def received(self, wires: Mapping[str, Wire]) -> dict[str, list[int]]:
        """The numbers of the frames that have arrived at each port, sorted."""
        return self.add({name: [] for name in wires}, wires)

    def add(self, known: dict[str, list[int]], wires: Mapping[str, Wire]) -> dict[str, list[int]]:
        """The same with those that have arrived since."""
        for name, wire in wires.items():
            known[name] += [_number_of(one) for one in wire.drain() if ETHERTYPE in one]
            known[name].sort()
        return known

    def is_more(self, one: dict[str, list[int]], other: dict[str, list[int]]) -> bool:
        """Whether `one` has a frame that `other` lacks: waiting for it is in vain."""
        return any(set(one[name]) - set(other[name]) or len(one[name]) > len(other[name]) for name in one)


def _text_of(ports: list[Port], attributes: Mapping[str, Mapping[str, bool]]) -> str:
    """A file with all ports in one bridge."""
    members: list[dict[str, Any]] = []
    for port in ports:
        words = {name: "on" if on else "off" for name, on in attributes.get(port.name, {}).items()}
        members.append({"port": port.name} | words)
    return config_text(ports, bridges=[{"name": "br0", "ports": members}])


@pytest.fixture
def both() -> Iterator[Both]:
    ports = [Port(name) for name in NAMES]
    with WiredForwarder(ports, bridges=[{"name": "br0", "ports": list(NAMES)}]) as wired:
        kernel = wired.lab.namespace("kernel", silent=True)
        far = wired.lab.namespace("control", silent=True)
        kernel.ip("link", "add", "name", "br0", "type", "bridge", "mcast_snooping", "0", "stp_state", "0")
        kernel.ip("link", "set", "dev", "br0", "arp", "off", "up")
        control = {}
        for index, name in enumerate(NAMES):
            end = End(far, name, f"02:00:00:00:03:{index:02x}")
            wired.lab.cable(End(kernel, name, f"02:00:00:00:02:{index:02x}"), end)
            kernel.ip("link", "set", "dev", name, "master", "br0")
            control[name] = Wire(end)
        wait_until(
            lambda: kernel.ip("-d", "link", "show").count("state forwarding") == len(NAMES), "all ports forwarded"
        )
        yield Both(wired, kernel, control)
        for wire in control.values():
            wire.close()


def _introduce(both: Both, port: str, host: bytes) -> None:
    """Have both bridges know where a host is; dl3d learns a moment after the frame."""
    if both.behind.get(host) == port or both.attributes.get(port, {}).get("learning") is False:
        return
    both.number += 1
    both.send(port, [_frame(BROADCAST, host, both.number)])
    both.behind[host] = port
    text = ":".join(f"{byte:02x}" for byte in host)
    wait_until(lambda: _macs_of(both.wired.dl3d).get(text) == port, f"dl3d had learnt {text}")


def _tagged(one: bytes, vid: int) -> bytes:
    """The frame with a VLAN tag."""
    return one[:12] + struct.pack("!HH", 0x8100, vid) + one[12:]


def _burst(both: Both, dice: random.Random, all_hosts: list[bytes], port: str) -> list[bytes]:
    """Some frames of the hosts behind a port."""
    here = [host for host, at in both.behind.items() if at == port]
    frames = []
    for _ in range(dice.randrange(1, 20)):
        both.number += 1
        reserved = bytes.fromhex("0180c20000") + bytes([dice.randrange(0x01, 0x10)])
        dst = dice.choice([*all_hosts, BROADCAST, MULTICAST, reserved])
        one = _frame(dst, dice.choice(here or [bytes.fromhex("020000000400")]), both.number)
        frames.append(_tagged(one, dice.randrange(1, 4095)) if dice.random() < 0.2 else one)
    return frames


def random_frames_arrive_where_linux_delivers_them(both: Both) -> None:
    """Takes several seconds: each burst waits until both bridges have delivered it."""
    dice = random.Random(int(os.environ.get("DL3_SEED", "1")))
    all_hosts = [bytes.fromhex(f"0200000005{number:02x}") for number in range(24)]
    moves: dict[bytes, int] = {}
    for step in range(150):
        port, host = dice.choice(NAMES), dice.choice(all_hosts)
        if step % 15 == 14:
            name = dice.choice(("isolated", "hairpin", "flood", "learning"))
            both.change(dice.choice(NAMES), **{name: dice.random() < 0.5})
        if both.behind.get(host) != port and moves.get(host, 0) < 4:  # more moves in 3 s would have it held
            moves[host] = moves.get(host, 0) + 1
            _introduce(both, port, host)
        both.send(port, _burst(both, dice, all_hosts, port))
    account = both.wired.account()
    assert account.is_closed
    assert account.copied > 300
    assert both.number > 1000


def a_reload_that_adds_and_removes_a_bridge_leaves_the_account_closed(both: Both) -> None:
    wired, file = both.wired, both.wired.dl3d.file
    with_bridge = file.read_text()
    without = config_text(wired.ports).replace("@SOCKET@", str(wired.dl3d.socket))
    stop, sent = threading.Event(), [0]

    def flood() -> None:
        while not stop.is_set():
            wired.wires["a"].send(_frame(BROADCAST, _mac_bytes(host_mac(0)), sent[0]))
            sent[0] += 1

    before = wired.account()
    sender = threading.Thread(target=flood)
    sender.start()
    for text in (without, with_bridge) * 3:
        file.write_text(text)
        wired.dl3d.call("reload")
        count = sent[0]
        wait_until(lambda count=count: sent[0] > count + 200, "more frames were sent")  # type: ignore[misc]
    stop.set()
    sender.join()
    wait_until(lambda: wired.account().is_closed, "the account was closed")
    after = wired.account().since(before)
    assert after.drops.keys() <= {"ethertype_unknown", "mac_group", "tx_refused"}
    assert after.copied > 0


def an_address_that_moves_too_often_is_held_and_named(both: Both) -> None:
    host = bytes.fromhex("020000000601")
    dl3d = both.wired.dl3d

    def row() -> dict[str, Any]:
        rows = {one["mac"]: one for one in dl3d.call("macs")["macs"]}
        return dict(rows.get("02:00:00:00:06:01", {"kind": "", "port": ""}))

    # On a slow machine a round may take longer than the time in which moves count.
    for port in ("a", "b") * 100:
        both.wired.wires[port].send(_frame(BROADCAST, host, 1))
        wait_until(lambda port=port: row()["port"] == port or row()["kind"] == "held", "it moved")  # type: ignore[misc]
        if row()["kind"] == "held":
            break
    assert row()["kind"] == "held"
    wait_until(lambda: "02:00:00:00:06:01 has moved more than 5 times" in dl3d.stderr, "the log had it")


def dl3_shows_bridges_and_macs(both: Both) -> None:
    host = bytes.fromhex("020000000701")
    _introduce(both, "c", host)
    command = [sys.executable, "-m", "dl3", "show"]
    place = ["--socket", str(both.wired.dl3d.socket)]
    shown = subprocess.run([*command, "macs", "--port", "c", *place], capture_output=True, text=True, check=True)
    assert "02:00:00:00:07:01" in shown.stdout
    assert "learnt" in shown.stdout
    shown = subprocess.run([*command, "bridges", *place], capture_output=True, text=True, check=True)
    assert "br0" in shown.stdout
    as_json = subprocess.run([*command, "bridges", "--json", *place], capture_output=True, text=True, check=True)
    assert '"learnt_macs": 1' in as_json.stdout
