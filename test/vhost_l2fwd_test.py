"""Two guests and a switch, as in a report on l2fwd under KVM: the first one sends, the second one forwards.

    VM1 (dl3gen) --- bridge to --- VM2 (dl3d in mode xconnect, or dpdk-l2fwd) --- bridge back --- VM1

Each frame that is lost must be named at its hop.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.guest import GUEST, make_guest
from harness.vhost import guest_mac
from harness.vhost_guests import PATIENCE_S, Card, GuestRun, vhost_guest
from harness.wire import wait_until
from harness.wired import DL3D, TOP, Account

from dl3.lab.forwarder import Forwarder

pytestmark = pytest.mark.long  # guests without KVM boot slowly

L2FWD = Path("/usr/share/dpdk/examples/l2fwd/main.c")
PORTS = ("vm1-a", "vm1-b", "vm2-a", "vm2-b")
FRAMES, RATE = 200_000, "100 kpps"
MIB = 1280

# Huge pages, and DPDK's driver for both cards.
UP = f"""
cd {TOP}
export DL3_BUILD=build-portable PYTHONPATH=.:test
echo 256 >/proc/sys/vm/nr_hugepages
mkdir -p /dev/hugepages
mount -t hugetlbfs none /dev/hugepages
modprobe uio_pci_generic
for card in /sys/bus/pci/devices/*; do
	[ "$(cat "$card/class")" = 0x020000 ] || continue
	echo uio_pci_generic >"$card/driver_override"
	[ ! -e "$card/driver" ] || basename "$card" >"$card/driver/unbind"
	basename "$card" >/sys/bus/pci/drivers_probe
done
"""
GENERATE = "build/venv/bin/python test/harness/guest_l2fwd.py generate {mac} {frames} '{rate}'\n"
FORWARD = {
    "dl3d": "build/venv/bin/python test/harness/guest_l2fwd.py forward\n",
    "l2fwd": "build/guest/l2fwd -l 0-1 -n 1 --main-lcore 0 -- -p 3 -T 1\n",
}


def _told(guest: GuestRun) -> dict[str, Any]:
    """The latest counts of dl3gen or dl3d."""
    lines = re.findall(r"^counts (\{.*\})$", guest.text(), re.MULTILINE)
    return dict(json.loads(lines[-1])) if lines else {}


def _told_by_l2fwd(guest: GuestRun) -> dict[str, Any]:
    """Those of l2fwd: of its ports 0 and 1."""
    tables = guest.text().split("Port statistics ====")
    found = {}
    for word in ("sent", "received", "dropped"):
        found[word] = [int(n) for n in re.findall(rf"Packets {word}: +(\d+)", tables[-1])]
    if len(tables) < 2 or any(len(numbers) < 2 for numbers in found.values()):
        return {}
    drops = {"l2fwd's ring full": found["dropped"][1]} if found["dropped"][1] else {}
    return {"received": found["received"][0], "sent": found["sent"][1], "drops": drops, "closed": True}


TOLD: dict[str, Callable[[GuestRun], dict[str, Any]]] = {"dl3d": _told, "l2fwd": _told_by_l2fwd}


def _text(folder: Path) -> str:
    """The switch."""
    ports = [{"name": name, "vhost": {"socket": f"{folder}/{name}.sock"}} for name in PORTS]
    whole = {
        "ports": ports,
        "bridges": [{"name": f"br-{side}", "ports": [f"vm1-{side}", f"vm2-{side}"]} for side in "ab"],
        "workers": [{"core": core} for core in sorted(os.sched_getaffinity(0))[:2]],
        "memory": {"hugepages": "never"},
        "control": {"socket": "@SOCKET@"},
    }
    return yaml.safe_dump(whole, sort_keys=False)


def _cards(folder: Path, guest: str) -> list[Card]:
    return [Card(folder / f"{name}.sock", guest_mac(PORTS.index(name))) for name in PORTS if name.startswith(guest)]


@dataclass
class Hops:
    """What was counted on the way: hops, each with what came in, what went out, and where the difference is named."""

    dl3d: Forwarder
    guests: dict[str, GuestRun]
    told: Callable[[GuestRun], dict[str, Any]]
    rows: list[tuple[str, int, int]] = field(default_factory=list)
    drops: dict[str, dict[str, int]] = field(default_factory=dict)

    def are_explained(self) -> bool:
        """Whether each frame that came in somewhere went out or was named, and nothing is under way."""
        first, second = _told(self.guests["vm1"]), self.told(self.guests["vm2"])
        account = Account.of(self.dl3d.call("drops"))
        ports = {port["name"]: port for port in self.dl3d.call("ports")["ports"]}
        if not first or not second:
            return False
        self.rows = [
            ("switch, there", ports["vm1-a"]["rx_packets"], ports["vm2-a"]["tx_packets"]),
            ("VM2", second["received"], second["sent"]),
            ("switch, back", ports["vm2-b"]["rx_packets"], ports["vm1-b"]["tx_packets"]),
        ]
        self.drops = {"switch": account.drops, "VM2": second["drops"]}
        chain = [first["sent"], *(n for row in self.rows for n in row[1:]), first["received"]]
        lost = {"switch": 0, "VM2": 0}
        for name, came, went in self.rows:
            lost[name.split(",")[0]] += came - went
        named = {place: sum(drops.values()) for place, drops in self.drops.items()}
        # What goes out of one place comes in at the next.
        is_passed_on = all(chain[at] == chain[at + 1] for at in range(0, len(chain), 2))
        return bool(first["done"]) and is_passed_on and account.is_closed and second["closed"] and lost == named

    def wait(self, name: str) -> None:
        """Wait until the second guest forwards, or for the first one until each loss is explained."""
        guest = self.guests[name]
        is_done = self.are_explained if name == "vm1" else lambda: bool(self.told(guest))
        try:
            wait_until(lambda: is_done() or guest.has_left(), f"{name} had done its work", PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.text()}\n{guest.text()[-3000:]}") from error
        assert not guest.has_left(), guest.text()

    def text(self) -> str:
        """A table for people."""
        lines = [f"{name:14} {came:>9} in {went:>9} out {came - went:>9} lost" for name, came, went in self.rows]
        first = _told(self.guests["vm1"]) if "vm1" in self.guests else {}
        return "\n".join([*lines, f"lost as: {self.drops}; VM1 counted {first}"])


def _build_l2fwd() -> None:
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk"], capture_output=True, text=True, check=True)
    subprocess.run(["cc", "-O2", "-w", str(L2FWD), *flags.stdout.split(), "-o", str(GUEST / "l2fwd")], check=True)


@pytest.mark.parametrize("forwarder", list(FORWARD))
def a_guest_forwards_and_each_loss_is_named(tmp_path: Path, forwarder: str) -> None:
    """At a rate that is too high for emulated guests: frames find full rings."""
    make_guest()
    subprocess.run(["make", "-s", "portable"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    if forwarder == "l2fwd":
        _build_l2fwd()
    with ExitStack() as ends:
        dl3d = ends.enter_context(Forwarder(DL3D, _text(tmp_path)))
        dl3d.wait_ready()
        scripts = {
            "vm2": UP + FORWARD[forwarder],
            "vm1": UP + GENERATE.format(mac=guest_mac(PORTS.index("vm2-a")), frames=FRAMES, rate=RATE),
        }
        guests: dict[str, GuestRun] = {}
        hops = Hops(dl3d, guests, TOLD[forwarder])
        # The first guest starts when the second one forwards.
        for name in ("vm2", "vm1"):
            guests[name] = ends.enter_context(
                vhost_guest(tmp_path, name, scripts[name], _cards(tmp_path, name), mib=MIB)
            )
            hops.wait(name)
        received = _told(guests["vm1"])["received"]
        print(f"\n{forwarder} in VM2:\n{hops.text()}")
        assert received > 100, "some came back"
