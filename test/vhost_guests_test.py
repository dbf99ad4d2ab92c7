"""Linux guests in QEMU, connected by vhost-user ports of dl3d, which routes between them."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import yaml
from harness.guest import make_guest
from harness.vhost import guest_mac
from harness.vhost_guests import PATIENCE_S, Card, GuestRun, vhost_guest
from harness.wire import wait_until
from harness.wired import DL3D, Account

from dl3.control.replies import Port, Ports
from dl3.lab.forwarder import Forwarder
from dl3.lab.guest import SHARED

pytestmark = pytest.mark.long  # guests without KVM boot slowly beside other work

Guest = AbstractContextManager[GuestRun]
QUEUES = 4
BYTES = 2_000_000
NAMES = ("vm1", "vm2")

UP = """
modprobe virtio_net
until [ -e /sys/class/net/eth0 ]; do /tmp/bin/busybox sleep 0.1; done
ip link set lo up
ip link set eth0 up
ip address add 10.0.{me}.2/24 dev eth0
ip neighbour replace 10.0.{me}.1 lladdr {mac} dev eth0 nud permanent
ip route add default via 10.0.{me}.1
"""
# The checksum of what is sent, and of what arrives.
SEND = """python3 - <<'END'
import hashlib, os, socket, time
data = os.urandom({bytes})
while True:
    try:
        with socket.create_connection(("10.0.2.2", 5001), 10) as peer:
            peer.settimeout(None)
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            answer = peer.recv(64)
            break
    except OSError:
        time.sleep(0.2)
print("sent:", hashlib.sha256(data).hexdigest() if answer == b"done" else answer)
END
"""
# What the sender leaves to dl3d: nothing, checksums, segmentation too.
LEAVE = """ethtool -K eth0 tx {tx} tso {tso} || exit 8
ethtool -k eth0 | grep -E '^(tx-checksumming|tcp-segmentation-offload):'
"""
LEFT = (("off", "off"), ("on", "off"), ("on", "on"))
RECEIVE = """python3 - <<'END'
import hashlib, socket
with socket.create_server(("10.0.2.2", 5001)) as server:
    for _ in range({n}):
        peer, _ = server.accept()
        found = hashlib.sha256()
        while piece := peer.recv(65536):
            found.update(piece)
        rows = [line.split() for line in open("/proc/net/snmp") if line.startswith("Tcp:")]
        print("bad:", dict(zip(*rows))["InCsumErrors"])
        print("received:", found.hexdigest(), flush=True)
        peer.sendall(b"done")
END
"""
# What the receiver takes.
TAKES = pytest.mark.parametrize(
    "card", [(), ("guest_csum=off", "guest_tso4=off", "guest_tso6=off")], ids=["takes_all", "takes_none"]
)
PING = "until ping -c 1 -W 1 10.0.2.2 >/dev/null; do :; done\n"
CHANGE = """for n in 1 2 4 1; do
ethtool -L eth0 combined $n || exit 9
ping -c 5 -i 0.2 -W 20 10.0.2.2 | grep -E 'received' | sed "s/^/queues $n: /"
done
"""


def _guest(folder: Path, name: str, script: str, backend: str = SHARED, options: Sequence[str] = ()) -> Guest:
    card = Card(folder / f"{name}.sock", guest_mac(NAMES.index(name)), QUEUES, options)
    return vhost_guest(folder, name, script, [card], backend)


def _forwarder(folder: Path) -> Forwarder:
    ports = [
        {
            "name": name,
            "addresses": [f"10.0.{i + 1}.1/24"],
            "vhost": {"socket": f"{folder}/{name}.sock", "queues": QUEUES, "offloads": "on"},
        }
        for i, name in enumerate(NAMES)
    ]
    whole = {
        "ports": ports,
        "neighbours": [f"10.0.{i + 1}.2 lladdr {guest_mac(i)} dev {name}" for i, name in enumerate(NAMES)],
        "workers": [{"core": core} for core in sorted(os.sched_getaffinity(0))[:2]],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return Forwarder(DL3D, yaml.safe_dump(whole, sort_keys=False))


def _port(dl3d: Forwarder, name: str) -> Port:
    (found,) = [port for port in Ports.model_validate(dl3d.call("ports")).ports if port.name == name]
    return found


def _mac(dl3d: Forwarder, me: int) -> str:
    return UP.format(me=me, mac=_port(dl3d, f"vm{me}").mac)


def _features(dl3d: Forwarder, name: str) -> tuple[str, ...]:
    vhost = _port(dl3d, name).vhost
    assert vhost
    return vhost.features


def _sends() -> Iterator[str]:
    for tx, tso in LEFT:
        yield LEAVE.format(tx=tx, tso=tso) + SEND.format(bytes=BYTES)


@TAKES
def two_guests_exchange_packets_and_files(tmp_path: Path, card: Sequence[str]) -> None:
    """Ping, TCP with and without offloads at both ends, and changes of the number of queues."""
    make_guest()
    with ExitStack() as ends:
        dl3d = ends.enter_context(_forwarder(tmp_path))
        dl3d.wait_ready()
        scripts = {
            "vm1": _mac(dl3d, 1) + PING + "".join(_sends()) + CHANGE,
            "vm2": _mac(dl3d, 2) + RECEIVE.format(n=len(LEFT)) + "exec /tmp/bin/busybox sleep 100000\n",
        }
        options = {"vm1": (), "vm2": card}
        guests = {
            name: ends.enter_context(_guest(tmp_path, name, scripts[name], options=options[name])) for name in NAMES
        }
        wait_until(guests["vm1"].has_left, "the first guest had done its work", PATIENCE_S)
        texts = {name: guest.text() for name, guest in guests.items()}
        said = "\n".join(f"{name}, {guests[name].state()}:\n{text}" for name, text in texts.items())
        account = Account.of(dl3d.call("drops"))
        assert "guest: left with 0" in texts["vm1"], said
        sent = re.findall(r"^sent: (\w{64})$", texts["vm1"], re.MULTILINE)
        received = re.findall(r"^received: (\w{64})$", texts["vm2"], re.MULTILINE)
        assert len(sent) == len(LEFT), said
        assert sent == received, said
        assert set(re.findall(r"^bad: (\d+)$", texts["vm2"], re.MULTILINE)) == {"0"}, said
        for word, at in (("tx-checksumming", 0), ("tcp-segmentation-offload", 1)):
            assert re.findall(rf"^{word}: (\w+)", texts["vm1"], re.MULTILINE) == [left[at] for left in LEFT], said
        assert ("guest_tso4" in _features(dl3d, "vm2")) == (not card)
        assert account.drops.get("offload_bad", 0) == 0
        for n in (1, 2, 4, 1):
            assert f"queues {n}: 5 packets transmitted, 5 received" in texts["vm1"], said
        assert account.received > len(LEFT) * BYTES / 65536
        wait_until(lambda: Account.of(dl3d.call("drops")).is_closed, "the account balanced")


def memory_that_is_not_shared_is_named(tmp_path: Path) -> None:
    make_guest()
    with ExitStack() as ends:
        dl3d = ends.enter_context(_forwarder(tmp_path))
        dl3d.wait_ready()
        script = _mac(dl3d, 1) + "exec /tmp/bin/busybox sleep 100000\n"
        guest = ends.enter_context(_guest(tmp_path, "vm1", script, ""))
        words = "port vm1: guest memory is not shared; give QEMU's memory backend share=on"
        wait_until(lambda: words in dl3d.stderr or guest.process.poll() is not None, "it was named", PATIENCE_S)
        assert words in dl3d.stderr, guest.text()
        assert not _port(dl3d, "vm1").link_up
