"""Undo: what cannot be put back stays in the journal, and what was not confirmed is undone by itself."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dl3.host.change import journal as journals
from dl3.host.change.apply import apply
from dl3.host.change.confirm import confirm
from dl3.host.change.fixture import CARD, Crash, Kernel, Manifest, boot, manifest, ready, stop_after
from dl3.host.change.undo import TIMER, Left, undo, undo_unconfirmed
from dl3.host.tuning.plan import Tuning
from dl3.model.fault import Fault, UsageFault

KSM = "/sys/kernel/mm/ksm/run"
GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
DRIVER = f"sys/bus/pci/devices/{CARD}/driver"
HELD = f"etc/driverctl.d/pci-{CARD}"
UNMANAGED = "etc/NetworkManager/conf.d/90-dl3.conf"


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _whys(left: tuple[Left, ...] | None) -> list[str]:
    return [str(one) for one in left or ()]


def the_journal_stays_until_every_step_is_put_back(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    apply(Kernel(root), tuning)
    said = f"{KSM} could not be put back: the kernel refuses '1' for {KSM}: Invalid argument"
    for _ in range(2):
        assert _whys(undo(Kernel(root, fails="ksm/run"))) == [said]
        assert (root / KSM[1:]).read_text() == "0\n"
    (root / GOVERNOR).write_text("performance\n")  # as the plan had it, but of somebody else: it was put back before
    assert undo(Kernel(root)) == ()
    assert (root / GOVERNOR).read_text() == "performance\n"
    (root / GOVERNOR).write_text("powersave\n")
    assert manifest(root) == before


@pytest.mark.parametrize("path", [KSM, "driver_override", "drivers_probe", "nr_hugepages"])
def whatever_step_fails_the_others_are_put_back_and_the_next_undo_completes(path: str, tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    apply(Kernel(root), tuning)
    assert len(_whys(undo(Kernel(root, fails=path)))) == 1
    assert not (root / "etc/default/grub.d").exists()
    assert undo(Kernel(root)) == ()
    assert manifest(root) == before


def a_command_that_fails_is_run_again_by_the_next_undo(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    apply(Kernel(root), tuning)

    def passing(what: str) -> None:
        if what == "run update-grub":
            raise Fault("'update-grub' failed with status 1: no space left")

    assert _whys(undo(Kernel(root, passing=passing))) == [
        "/etc/default/grub.d/90-dl3.cfg could not be put back: 'update-grub' failed with status 1: no space left"
    ]
    kernel = Kernel(root)
    assert undo(kernel) == ()
    assert kernel.ran == [("update-grub",)]
    assert manifest(root) == before


def a_new_plan_waits_until_the_old_one_is_undone_completely(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    apply(Kernel(root), tuning)
    assert undo(Kernel(root, fails="ksm/run"))
    with pytest.raises(
        UsageFault, match=r"is not undone completely \(/sys/kernel/mm/ksm/run could not be put back: .*undo' first"
    ):
        apply(Kernel(root, fails="ksm/run"), tuning)
    apply(Kernel(root), tuning)
    assert (root / KSM[1:]).read_text() == "0\n"


def what_is_left_can_be_given_up(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    apply(Kernel(root), tuning)
    assert len(_whys(undo(Kernel(root, fails="ksm/run"), forgets=True))) == 1
    assert not (root / journals.FOLDER[1:]).exists()
    assert undo(Kernel(root)) is None


def a_failed_apply_whose_undo_fails_says_so_and_can_be_undone_later(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    kernel = Kernel(root)
    broken = Kernel(root, fails="driver_override", passing=lambda what: _no_update(kernel, what))
    with pytest.raises(
        Fault, match=r"driver_override.*90-dl3.cfg could not be put back: .*; run 'dl3 host undo' to try again"
    ):
        apply(broken, tuning)
    assert undo(kernel) == ()
    assert manifest(root) == before


def _no_update(seen: Kernel, what: str) -> None:
    """update-grub works once."""
    if what == "run update-grub":
        seen.ran.append((what,))
        if len(seen.ran) > 1:
            raise Fault("no space left")


def _without_journal(found: Manifest) -> Manifest:
    return {path: one for path, one in found.items() if not path.startswith("var/lib/dl3-host")}


def _unconfirmed(tmp_path: Path) -> tuple[Path, Tuning, Manifest]:
    """A machine with a plan that is applied; and how it shall be if nobody confirms."""
    root, tuning = ready(tmp_path)
    whole = tmp_path / "whole"
    shutil.copytree(root, whole, symlinks=True)
    rest = tuple(step for n, step in enumerate(tuning.steps) if n not in tuning.unconfirmed)
    apply(Kernel(whole), tuning.model_copy(update={"steps": rest}))
    apply(Kernel(root), tuning)
    return root, tuning, _without_journal(manifest(whole))


def only_what_needs_confirmation_is_undone_by_the_timer(tmp_path: Path) -> None:
    root, tuning, wanted = _unconfirmed(tmp_path)
    assert (root / DRIVER).readlink().name == "vfio-pci"
    assert (root / UNMANAGED).exists()
    assert undo_unconfirmed(Kernel(root)) == ()
    assert _without_journal(manifest(root)) == wanted
    assert (root / DRIVER).readlink().name == "ixgbe"
    journal = journals.read(Kernel(root))
    assert journal
    assert journal.numbers == frozenset(range(len(tuning.steps))) - tuning.unconfirmed
    assert not journal.waits
    assert not confirm(Kernel(root)), "there is nothing to keep any more"
    assert undo_unconfirmed(Kernel(root)) is None
    assert _without_journal(manifest(root)) == wanted


def undo_after_the_timer_puts_the_rest_back(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    before = manifest(root)
    apply(Kernel(root), tuning)
    undo_unconfirmed(Kernel(root))
    assert undo(Kernel(root)) == ()
    assert manifest(root) == before


def a_boot_without_confirmation_finds_the_old_driver(tmp_path: Path) -> None:
    root, _, _ = _unconfirmed(tmp_path)
    assert not (root / HELD).exists(), "nothing binds the card again"
    (root / DRIVER).unlink()
    (root / DRIVER).symlink_to("../../../bus/pci/drivers/ixgbe")
    (root / f"{DRIVER}_override").write_text("(null)\n")
    with pytest.raises(Fault, match=r"0000:03:00\.0 has the driver ixgbe instead of vfio-pci, perhaps after a boot"):
        confirm(Kernel(root))
    assert not (root / HELD).exists()


def what_is_confirmed_stays_also_over_boots(tmp_path: Path) -> None:
    root, tuning, _ = _unconfirmed(tmp_path)
    kernel = Kernel(root)
    assert confirm(kernel)
    assert kernel.ran == [("systemctl", "stop", f"{TIMER}.timer")]
    assert (root / HELD).read_text() == "vfio-pci\n"
    assert not confirm(kernel)
    after = manifest(root)
    assert undo_unconfirmed(kernel) is None
    assert manifest(root) == after
    for n in tuning.unconfirmed - tuning.held:
        assert tuning.steps[n].kind in ("driver", "file")


def _killed_anywhere(
    tmp_path: Path, work: Callable[[Kernel], object], finish: Callable[[Kernel], object], wanted: list[Manifest]
) -> int:
    """Kills the work before each change in turn, calls `finish`, and compares. Returns the number of changes."""
    n = 0
    while True:
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        root, tuning = ready(tmp_path)
        apply(Kernel(root), tuning)
        try:
            work(Kernel(root, passing=stop_after(n)))
        except Crash:
            finish(Kernel(root))
            assert _without_journal(manifest(root)) in wanted, n
            n += 1
        else:
            return n


def a_timer_that_is_killed_anywhere_is_finished_by_the_next_call(tmp_path: Path) -> None:
    _, _, wanted = _unconfirmed(tmp_path)
    assert _killed_anywhere(tmp_path, undo_unconfirmed, undo_unconfirmed, [wanted]) > 8


def a_confirmation_that_is_killed_anywhere_leaves_the_driver_to_the_timer_or_for_good(tmp_path: Path) -> None:
    root, _, wanted = _unconfirmed(tmp_path)
    confirm(Kernel(root))
    kept = _without_journal(manifest(root))
    assert _killed_anywhere(tmp_path, confirm, undo_unconfirmed, [wanted, kept]) > 4


def a_driver_that_cannot_be_put_back_is_tried_again(tmp_path: Path) -> None:
    root, _, wanted = _unconfirmed(tmp_path)
    assert len(_whys(undo_unconfirmed(Kernel(root, fails="drivers_probe")))) == 1
    assert undo_unconfirmed(Kernel(root)) == ()
    assert _without_journal(manifest(root)) == wanted


def interrupts_of_an_earlier_boot_are_not_those_with_the_same_numbers(tmp_path: Path) -> None:
    root, tuning = ready(tmp_path)
    apply(Kernel(root), tuning)
    affinity = root / "proc/irq/40/smp_affinity_list"
    assert affinity.read_text() == "0,2\n"
    boot(root)
    for now in ("0-3\n", "0\n", "0,2\n"):  # the last one as the plan has it, by chance
        affinity.write_text(now)
    assert undo(Kernel(root)) == ()
    assert affinity.read_text() == now
