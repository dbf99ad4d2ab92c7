"""VFs on a folder that behaves like sysfs: made in order, removed by the timer, by undo, and after a kill."""

import os
import shutil
from pathlib import Path

import pytest

from dl3.host.change import journal as vfs_journal
from dl3.host.change import vfs
from dl3.host.change.apply import apply
from dl3.host.change.confirm import confirm
from dl3.host.change.fixture import CARD, Crash, Kernel, Manifest, machine, manifest, stop_after
from dl3.host.change.undo import undo, undo_unconfirmed
from dl3.host.change.verify import verify
from dl3.host.facts.read import read
from dl3.host.tuning.plan import Tuning
from dl3.host.tuning.step import VfSettings
from dl3.host.tuning.vfs import plan_vfs
from dl3.model.fault import Fault, UsageFault

AT = f"sys/bus/pci/devices/{CARD}"
SETTINGS = (VfSettings(mac="02:00:00:00:00:01", vlan=7), VfSettings(spoofchk=False, trust=True))


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _ready(tmp_path: Path, binds: bool = False) -> tuple[Path, Tuning, Manifest]:
    root = tmp_path / "root"
    made = machine()
    made.texts[f"/{AT}/net/eth0/ifindex"] = "2\n"
    made.write(root)
    return root, plan_vfs(read(Kernel(root).tree), CARD, SETTINGS, binds), manifest(root)


def makes_configures_and_removes_them(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path)
    passed: list[str] = []
    kernel = Kernel(root, passing=passed.append)
    apply(kernel, tuning)
    assert (root / AT / "sriov_numvfs").read_text() == "2\n"
    assert [" ".join(one[4:]) for one in kernel.ran if one[0] == "ip"] == [
        "eth0 vf 0 mac 02:00:00:00:00:01",
        "eth0 vf 0 vlan 7",
        "eth0 vf 1 spoofchk off",
        "eth0 vf 1 trust on",
    ]
    pokes = [one.rpartition("/")[2] for one in passed if one.startswith(("poke", "run ip", "run systemd-run"))]
    assert pokes[:3] == ["run systemd-run", "sriov_drivers_autoprobe", "sriov_numvfs"], (
        "the timer first, no driver takes them"
    )
    assert pokes[3:] == ["run ip"] * 4 + ["drivers_probe"] * 2 + ["sriov_drivers_autoprobe"], "drivers see the settings"
    assert (root / AT / "sriov_drivers_autoprobe").read_text() == "1\n"
    assert confirm(kernel)
    rows = verify(kernel, _journal(kernel), read(kernel.tree))
    assert [(row.what, row.found, row.is_met) for row in rows if "VFs" in row.what] == [(f"VFs of {CARD}", "2", True)]
    assert undo(kernel) == ()
    assert manifest(root) == before


def _journal(kernel: Kernel) -> vfs_journal.Journal:
    found = vfs_journal.read(kernel)
    assert found
    return found


def gives_them_to_vfio_pci(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path, binds=True)
    apply(Kernel(root), tuning)
    for n in range(2):
        vf = (root / AT / f"virtfn{n}").resolve()
        assert (vf / "driver").readlink().name == "vfio-pci"
    assert undo(Kernel(root)) == ()
    assert manifest(root) == before


def what_is_not_confirmed_is_removed_by_the_timer(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path)
    apply(Kernel(root), tuning)
    assert undo_unconfirmed(Kernel(root)) == ()
    assert manifest(root) == before, "nothing else was applied, so the journal is gone, too"


def killed_anywhere_they_are_gone_after_the_next_call(tmp_path: Path) -> None:
    n = 0
    while True:
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        root, tuning, before = _ready(tmp_path, binds=n % 2 == 1)
        try:
            apply(Kernel(root, passing=stop_after(n)), tuning)
        except Crash:
            undo(Kernel(root))
            assert manifest(root) == before, n
            n += 1
        else:
            break
    assert n > 15


def a_vf_that_a_program_holds_is_named_and_left_until_it_ends(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path, binds=True)
    apply(Kernel(root), tuning)
    vf = (root / AT / "virtfn1").resolve()
    (vf / "iommu_group").symlink_to("../../../kernel/iommu_groups/77")
    held = root / "proc/4711/fd"
    held.mkdir(parents=True)
    (held / "9").symlink_to("/dev/vfio/77")
    (root / "proc/4711/comm").write_text("qemu-system-x86\n")
    (left,) = undo(Kernel(root)) or ()
    assert str(left).endswith(f"the VF {vf.name} is in use by qemu-system-x86 (pid 4711): end it first")
    assert (root / AT / "sriov_numvfs").read_text() == "2\n"
    shutil.rmtree(root / "proc/4711")
    assert undo(Kernel(root)) == ()
    assert manifest(root) == before


def vfs_that_do_not_appear_are_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vfs, "WAIT_S", 0.0)
    monkeypatch.setattr(Kernel, "show_vfs", lambda *_: None)
    root, tuning, before = _ready(tmp_path)
    with pytest.raises(
        Fault, match=r"made 0 of 2 VFs in 0 s: the kernel's log says why \(dmesg\); everything is as before"
    ):
        apply(Kernel(root), tuning)
    assert manifest(root) == before


def refuses_where_the_number_changed_or_the_card_became_that_of_management(tmp_path: Path) -> None:
    root, tuning, _ = _ready(tmp_path)
    (root / AT / "sriov_numvfs").write_text("1\n")
    with pytest.raises(UsageFault, match="has 1 VFs instead of 0"):
        apply(Kernel(root), tuning)
    (root / AT / "sriov_numvfs").write_text("0\n")
    (root / "dl3-outputs/ip4-routes").write_text('[{"dst": "default", "dev": "eth0"}]')
    with pytest.raises(UsageFault, match=f"making VFs of {CARD} is refused: this machine is managed through it"):
        apply(Kernel(root), tuning)
