"""dl3 host on a fresh Debian that boots by its own GRUB: planned, applied, booted, with its kernel installed again, undone.

What has to be in effect is computed from QEMU's arguments. All files of the disk are compared from outside. The unit that
settles the trial boot is run by the guest's own systemd.
"""

import json
from pathlib import Path

import pytest
from harness.debian import FORWARDING, KERNEL, copy_disk
from harness.emulated import Emulated, Topology, card_of, emulated
from harness.manifest import difference, manifest
from harness.packages import SUITES

CPUS = "/sys/devices/system/cpu"
PAGES = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"
PLAN = "/run/plan.json"  # the disk does not have it
PAGE_MIB = 2

pytestmark = [pytest.mark.long, pytest.mark.alone]  # an emulated machine boots five times: minutes


def listed(cpus: list[int]) -> str:
    """A list of CPUs that follow each other, as the kernel prints it."""
    return f"{cpus[0]}-{cpus[-1]}"


def effects(machine: Emulated, card: str) -> dict[str, str]:
    """What the kernel did, read without dl3."""
    read = {"isolated": f"cat {CPUS}/isolated", "nohz_full": f"cat {CPUS}/nohz_full"}
    read |= {f"pages {node}": f"cat {PAGES.format(node)}" for node in range(machine.topology.n_nodes)}
    read |= {"driver": f"basename $(readlink /sys/bus/pci/devices/{card}/driver)"}
    read |= {"irqs": "cat /proc/irq/default_smp_affinity", "watchdog": "cat /proc/sys/kernel/watchdog"}
    return {name: machine.must(command).strip() for name, command in read.items()}


def wanted(topology: Topology, needed_mib: int) -> dict[str, str]:
    """What has to be in effect: the second core of the card's node, as the first one stays with Linux."""
    core = topology.core(topology.far, 1)
    rest = sum(1 << cpu for cpu in range(topology.n_cpus) if cpu not in core)
    pages = {f"pages {node}": "0" for node in range(topology.n_nodes)}
    pages |= {f"pages {topology.far}": str(-(-needed_mib // PAGE_MIB))}
    found = {"isolated": listed(core), "nohz_full": listed(core), "driver": "vfio-pci", "watchdog": "0"}
    return found | pages | {"irqs": f"{rest:02x}"}


def words(machine: Emulated) -> list[str]:
    """Of the kernel's command line."""
    return machine.must("cat /proc/cmdline").split()


def apply(machine: Emulated, card: str) -> int:
    """Plan and apply; the memory that dl3d needs on the card's node, in MiB."""
    machine.must(f"dl3 host plan --nic {card} --bind --cores 1 --output {PLAN}")
    plan = json.loads(machine.must(f"cat {PLAN}"))
    assert plan["remarks"] == []
    machine.must(f"dl3 host apply {PLAN}")
    machine.must("dl3 host confirm")
    return int(plan["memory_mib"][str(machine.topology.far)])


@pytest.mark.parametrize("suite", SUITES)
def a_machine_is_prepared_and_put_back_byte_for_byte(suite: str, tmp_path: Path) -> None:
    disk, topology = tmp_path / "disk", Topology()
    copy_disk(suite, disk)
    with emulated(disk) as machine:  # a boot of its own, for what only the first one writes
        machine.off()
    before = manifest(disk)
    assert len(before) > 5000, "the whole disk"
    with emulated(disk) as machine:
        card = card_of(machine)
        had, line = effects(machine, card), words(machine)
        assert had["driver"] == FORWARDING
        needed_mib = apply(machine, card)
        machine.reboot()
        assert [word for word in words(machine) if word.startswith("dl3.trial=")], "the boot that tries the words"
        assert "wanted effect and stay" in machine.must("journalctl -b -u dl3-host-trial.service")
        assert effects(machine, card) == wanted(topology, needed_mib)
        machine.must("dl3 host verify")
        machine.must(f"dpkg -i /{KERNEL} && update-grub")
        machine.reboot()
        assert not [word for word in words(machine) if word.startswith(("dl3.trial=", "panic="))]
        assert effects(machine, card) == wanted(topology, needed_mib)
        machine.must("dl3 host verify")
        assert "everything is as before" in machine.must("dl3 host undo")
        machine.reboot()
        assert effects(machine, card) == had
        assert words(machine) == line
        machine.off()
    assert difference(before, manifest(disk)) == {}
