"""A machine is reached by ssh while cards are changed: what it is managed through is refused, what nobody confirms comes back.

All of it in a Debian with a real kernel, on an emulated machine.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.debian import FORWARDING, copy_disk
from harness.emulated import MACS, Emulated, card_of, emulated
from harness.wire import wait_until

PATIENCE_S = 1800.0  # an emulated machine's two minutes
TAIL = "table 100 metric 9000"  # the routes of ssh stay as they are
BOND = "ip link add b0 type bond; ip link set {card} down; ip link set {card} master b0; ip link set b0 up"
VLAN = "ip link add link {below} name v0 type vlan id 7; ip link set v0 up"
# Commands that make a layout in which the machine could be managed through the card.
LAYOUTS = {
    "a default route": "ip route add default dev {card} table 100",
    "only IPv6": "ip -6 route add default dev {card} table 100",
    "a rule that looks in another table": "ip rule add fwmark 1 lookup 101; ip route add default dev {card} table 101",
    "one of two next hops": "ip route add default table 100 nexthop dev {card} nexthop dev lo",
    "a VLAN": f"{VLAN.format(below='{card}')}; ip route add default dev v0 table 100",
    "a bond": f"{BOND}; ip route add default dev b0 table 100",
    "a VLAN on a bond": f"{BOND}; {VLAN.format(below='b0')}; ip route add default dev v0 table 100",
    "a bridge": "ip link add r0 type bridge; ip link set {card} master r0; ip link set r0 up; "
    "ip -6 route add default dev r0 table 100",
    "a bridge on a VLAN on a bond": f"{BOND}; {VLAN.format(below='b0')}; ip link add r0 type bridge; "
    "ip link set v0 master r0; ip link set r0 up; ip route add default dev r0 table 100",
    "a VRF": "ip link add f0 type vrf table 102; ip link set f0 up; ip link set {card} master f0; "
    "ip route add default dev {card} table 102",
    "a macvlan": "ip link add link {card} name m0 type macvlan; ip link set m0 up; ip route add default dev m0 table 100",
    "an ipvlan": "ip link add link {card} name i0 type ipvlan mode l2; ip link set i0 up; "
    "ip -6 route add default dev i0 table 100",
}
CLEAN = (
    "for one in v0 r0 m0 i0 f0 b0; do ip link del $one; done; for table in 100 101 102; do ip route flush table $table; "
    "ip -6 route flush table $table; done; ip rule del fwmark 1; ip link set {card} up; true"
)

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes on an emulated machine


class Session:
    """An ssh session that echoes."""

    def __init__(self, machine: Emulated, key: Path) -> None:
        options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        at = ["-F", "none", "-i", str(key), "-p", str(machine.port), "root@127.0.0.1"]
        self._process = subprocess.Popen(["ssh", *options, *at, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n_sent = 0

    def transfers(self) -> None:
        """More bytes go there and come back."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        line = f"{self.n_sent} {'x' * 10_000}\n".encode()
        stdin.write(line)
        stdin.flush()
        assert stdout.readline() == line
        self.n_sent += 1

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Emulated, Session]]:
    disk = tmp_path_factory.mktemp("machine") / "disk"
    key = copy_disk("bookworm", disk)
    with emulated(disk) as made:
        session = Session(made, key)
        try:
            yield made, session
        finally:
            session.close()


def interface(machine: Emulated, address: str) -> str:
    """The interface of a card."""
    return machine.must(f"ls /sys/bus/pci/devices/{address}/net").strip()


def twelve_layouts_are_refused_while_ssh_transfers(machine: tuple[Emulated, Session]) -> None:
    guest, session = machine
    address, beside = (card_of(guest, mac) for mac in MACS)
    card = interface(guest, address)
    for name, commands in LAYOUTS.items():
        session.transfers()
        made = guest.run("set -e; " + commands.format(card=card))
        assert made.status == 0, (name, made)
        refused = guest.run(f"dl3 host plan --nic {address} --bind")
        assert refused.status != 0, name
        assert "is refused: this machine is managed through it" in refused.error, (name, refused)
        guest.must(f"dl3 host plan --nic {beside} --bind --cores 1")
        guest.must(CLEAN.format(card=card))
        session.transfers()
    guest.must(f"dl3 host plan --nic {address} --bind --cores 1")


def the_card_of_the_session_itself_is_refused(machine: tuple[Emulated, Session]) -> None:
    guest, session = machine
    session.transfers()
    guest.must("ip route del default; ip -6 route flush default; true")
    own = guest.must("basename $(readlink -f /sys/class/net/enp0s3/device/..)").strip()
    refused = guest.run(f"dl3 host plan --nic {own} --bind")
    assert refused.status != 0
    assert "ssh" in refused.error, refused
    session.transfers()


def what_nobody_confirms_comes_back_although_all_of_dl3_is_killed(machine: tuple[Emulated, Session]) -> None:
    guest, session = machine
    address = card_of(guest)
    card, driver = interface(guest, address), f"readlink /sys/bus/pci/devices/{address}/driver"
    had = guest.must(f"ip -o address show dev {card} scope global; cat /sys/class/net/{card}/address")
    session.transfers()
    guest.must(f"dl3 host plan --nic {address} --bind --cores 1 --output /run/plan.json")
    guest.must("dl3 host apply /run/plan.json")
    guest.must("pkill -9 -f 'python.*dl3'; true")
    assert guest.must(driver).strip().endswith("/vfio-pci")
    session.transfers()
    wait_until(lambda: guest.must(f"{driver}; true").strip().endswith(f"/{FORWARDING}"), "it is back", PATIENCE_S)
    again = f"ip -o address show dev {card} scope global; cat /sys/class/net/{card}/address"
    wait_until(lambda: guest.run(again).out == had, "the interface is as before", PATIENCE_S)
    assert "IFF_UP" not in guest.must(f"ip link show {card}")  # the word is UP
    session.transfers()
    assert guest.run("dl3 host confirm").status == 0
    assert guest.must(driver).strip().endswith(f"/{FORWARDING}"), "nothing is left to confirm"
    guest.must("dl3 host undo")
