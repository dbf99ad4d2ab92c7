"""VFs of an emulated card that has some, made by dl3 host vf, with the driver and the kernel of Debian."""

import json
from pathlib import Path

import pytest
from harness import newer
from harness.debian import copy_disk
from harness.emulated import Emulated, card_of, emulated

MACS = ("02:00:00:00:01:01", "02:00:00:00:01:02")
VLAN = 7

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes on an emulated machine


def vfs(machine: Emulated, pf: str) -> list[str]:
    """The PCI addresses of the VFs of a card."""
    at = f"/sys/bus/pci/devices/{pf}"
    return machine.must(f"for one in {at}/virtfn*; do [ ! -e $one ] || basename $(readlink $one); done").split()


def drivers(machine: Emulated, addresses: list[str]) -> set[str]:
    """The drivers of cards."""
    at = "/sys/bus/pci/devices"
    return {machine.must(f"basename $(readlink {at}/{one}/driver); true").strip() for one in addresses}


def vfs_are_as_wished_and_gone_with_undo_and_with_a_boot(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    copy_disk("bookworm", disk)
    with emulated(disk, newer.program(tmp_path), "igb") as machine:
        pf = card_of(machine)
        assert vfs(machine, pf) == []
        interface = machine.must(f"ls /sys/bus/pci/devices/{pf}/net").strip()
        wishes = " ".join((*(f"--mac {mac}" for mac in MACS), f"--vlan {VLAN} --bind"))
        machine.must(f"dl3 host vf {pf} {len(MACS)} {wishes} --output /root/vfs.json")
        machine.must("dl3 host apply /root/vfs.json")
        machine.must("dl3 host confirm")
        made = vfs(machine, pf)
        assert len(made) == len(MACS)
        assert drivers(machine, made) == {"vfio-pci"}
        (link,) = json.loads(machine.must(f"ip -json link show dev {interface}"))
        assert [one["address"] for one in link["vfinfo_list"]] == list(MACS)
        assert {one["vlan_list"][0]["vlan"] for one in link["vfinfo_list"]} == {VLAN}
        machine.must("dl3 host verify")
        machine.must("dl3 host undo")
        assert vfs(machine, pf) == []
        machine.must("dl3 host apply /root/vfs.json")
        assert len(vfs(machine, pf)) == len(MACS)
        machine.reboot()
        assert vfs(machine, pf) == []
        machine.must("dl3 host undo")
