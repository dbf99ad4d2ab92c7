"""Trial boots below a folder: kept, failed, not taken, killed anywhere. What GRUB does is in fixture.boot()."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dl3.host.change import journal as journals
from dl3.host.change import trial_boot as trials
from dl3.host.change.apply import apply
from dl3.host.change.confirm import NO_BOOT, NOT_TAKEN, Settled, confirm, settle
from dl3.host.change.fixture import Crash, Kernel, Manifest, boot, manifest, stop_after
from dl3.host.change.root import Root
from dl3.host.change.undo import undo
from dl3.host.change.verify import Row, verify
from dl3.host.facts.read import read
from dl3.host.fixture import RELEASE, Machine
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.model.fault import Fault

FILE = GRUB.lstrip("/")
ISOLATED = "sys/devices/system/cpu/isolated"
KERNEL_FILE = "etc/kernel/cmdline"
ENTRIES = "efi/loader/entries"


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _ready(tmp_path: Path, made: Machine | None = None) -> tuple[Path, Tuning, Manifest]:
    root = tmp_path / "root"
    (made or Machine()).write(root)
    boot(root)
    tuning = plan(read(Root(root).tree), Request())
    return root, tuning, _manifest(root)


def _manifest(root: Path) -> Manifest:
    """Without what is of a boot."""
    return {path: one for path, one in manifest(root).items() if not path.endswith("/boot_id")}


def _without_journal(root: Path) -> Manifest:
    return {path: one for path, one in _manifest(root).items() if not path.startswith("var/lib/dl3-host")}


def _words(root: Path) -> list[str]:
    return (root / "proc/cmdline").read_text().split()


def _has(root: Path, tuning: Tuning) -> bool:
    """Whether the running kernel has the words."""
    return set(tuning.parameters) <= set(_words(root))


def _rows(root: Path) -> list[Row]:
    journal = journals.read(Root(root))
    assert journal
    return [row for row in verify(Root(root), journal, read(Root(root).tree)) if not row.is_met]


def one_boot_has_the_words_and_they_stay_if_they_work(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path)
    kernel = Kernel(root)
    apply(kernel, tuning)
    assert settle(kernel) == Settled.WAITS
    assert (_rows(root)[0].what, _rows(root)[0].waits) == ("trial boot", True)
    boot(root)
    assert _has(root, tuning)
    assert f"panic={trials.PANIC_SECONDS}" in _words(root)
    assert settle(kernel) == Settled.KEPT
    assert (root / FILE).read_text() == tuning.tried_step.after
    assert _rows(root) == []
    for path in (trials.GRUB_SCRIPT, f"/boot/grub/{trials.GRUB_MARK}", trials.UNIT, trials.WANTED):
        assert not (root / path.lstrip("/")).exists(), path
    assert kernel.ran == [("update-grub",)] * 2, "nothing boots by itself"
    boot(root)
    assert _has(root, tuning)
    assert not [word for word in _words(root) if word.startswith(("panic", trials.WORD))]
    assert settle(kernel) == Settled.NOTHING
    assert undo(kernel) == ()
    boot(root)
    assert _manifest(root) == before


def a_boot_that_does_not_come_up_is_followed_by_one_without_the_words(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path)
    kernel = Kernel(root)
    apply(kernel, tuning)
    boot(root)  # it panics
    boot(root)
    assert not _has(root, tuning)
    assert settle(kernel) == Settled.FAILED
    assert not (root / FILE).exists()
    assert next((row.what, row.found, row.waits) for row in _rows(root)) == ("trial boot", NO_BOOT, False)
    assert not any(row.waits for row in _rows(root))
    assert ("systemctl", "reboot") not in kernel.ran
    assert (root / "etc/sysctl.d/90-dl3.conf").exists(), "the rest stays until undo"
    assert undo(kernel) == ()
    assert _manifest(root) == before


def words_without_the_wanted_effect_are_named_and_left_by_a_boot(tmp_path: Path) -> None:
    root, tuning, _ = _ready(tmp_path)
    kernel = Kernel(root)
    apply(kernel, tuning)
    boot(root)
    (root / ISOLATED).write_text("\n")
    assert settle(kernel) == Settled.FAILED
    assert kernel.ran[-1] == ("systemctl", "reboot")
    said = "the trial boot differed from the plan (isolcpus: in effect: CPU 1 wanted, no CPU found)"
    assert _rows(root)[0].found == said
    boot(root)
    assert not _has(root, tuning)
    assert settle(kernel) == Settled.NOTHING
    assert kernel.ran[-1] == ("systemctl", "reboot")
    assert kernel.ran.count(("systemctl", "reboot")) == 1


def where_grub_cannot_write_the_words_are_never_used(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path)
    kernel = Kernel(root)
    apply(kernel, tuning)
    boot(root, takes_mark=False)
    assert not _has(root, tuning)
    assert settle(kernel) == Settled.FAILED
    assert _rows(root)[0].found == NOT_TAKEN
    undo(kernel)
    assert _manifest(root) == before


def confirm_keeps_the_words_in_the_trial_boot_only(tmp_path: Path) -> None:
    root, tuning, _ = _ready(tmp_path)
    kernel = Kernel(root)
    apply(kernel, tuning)
    assert not confirm(kernel)
    boot(root)
    (root / ISOLATED).write_text("\n")  # it would not be kept by itself
    assert confirm(kernel)
    boot(root)
    assert _has(root, tuning)


def words_of_an_older_file_are_used_until_the_new_ones_stay(tmp_path: Path) -> None:
    made = Machine()
    made.texts[GRUB] = plan(read(Machine(n_cores=8).tree()), Request(n_cores=2)).tried_step.after
    root, tuning, before = _ready(tmp_path, made)
    assert "isolcpus=managed_irq,domain,1-2" in _words(root)
    kernel = Kernel(root)
    apply(kernel, tuning)
    boot(root)
    assert [word for word in _words(root) if word.startswith("isolcpus")] == ["isolcpus=managed_irq,domain,1"]
    boot(root)
    assert [word for word in _words(root) if word.startswith("isolcpus")] == ["isolcpus=managed_irq,domain,1-2"]
    assert settle(kernel) == Settled.FAILED
    undo(kernel)
    assert _manifest(root) == before


def the_script_for_grub_is_one_that_a_shell_prints(tmp_path: Path) -> None:
    root, tuning, _ = _ready(tmp_path)
    apply(Kernel(root), tuning)
    script = root / trials.GRUB_SCRIPT.lstrip("/")
    assert os.access(script, os.X_OK)
    printed = subprocess.run([script], capture_output=True, text=True, check=True).stdout
    words = " ".join((*tuning.parameters, *trials.trial_words(trials.mark_of(tuning))))
    assert f'      set dl3_words="{words}"\n' in printed
    assert printed.startswith('set dl3_words=""\n')
    file = root / FILE
    shell = f'GRUB_CMDLINE_LINUX=a; . "{file}"; printf %s "$GRUB_CMDLINE_LINUX"'
    assert subprocess.run(["sh", "-c", shell], capture_output=True, text=True).stdout == "a $dl3_words"
    assert len((root / "boot/grub" / trials.GRUB_MARK).read_bytes()) == trials.SIZE


def _killed_anywhere(
    tmp_path: Path,
    prepare: Callable[[Path], None],
    work: Callable[[Kernel], object],
    check: Callable[[Path, int], None],
) -> int:
    """After `prepare` and an apply, kill the work before each change in turn, then boot and settle. Returns their number."""
    made, tuning, _ = _ready(tmp_path / "made")
    apply(Kernel(made), tuning)
    prepare(made)
    n, root = 0, tmp_path / "root"
    while True:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(made, root, symlinks=True)
        try:
            work(Kernel(root, passing=stop_after(n)))
        except Crash:
            boot(root)
            settle(Kernel(root))
            check(root, n)
            n += 1
        else:
            return n


def keeping_that_is_killed_anywhere_is_finished_after_the_next_boot(tmp_path: Path) -> None:
    root, tuning, _ = _ready(tmp_path)
    apply(Kernel(root), tuning)
    boot(root)
    settle(Kernel(root))
    boot(root)
    kept = _without_journal(root)
    failed = tuning.tried_step.path.lstrip("/")

    def check(root: Path, n: int) -> None:
        boot(root)
        if n > 1:
            assert _without_journal(root) == kept, n
        else:  # before it was written down that it passed
            assert not (root / failed).exists()

    assert _killed_anywhere(tmp_path, boot, settle, check) > 8


def going_back_that_is_killed_anywhere_is_finished_after_the_next_boot(tmp_path: Path) -> None:
    def lost(root: Path) -> None:
        boot(root)
        boot(root)

    root, tuning, _ = _ready(tmp_path)
    apply(Kernel(root), tuning)
    lost(root)
    settle(Kernel(root))
    wanted = _without_journal(root)

    def check(root: Path, n: int) -> None:
        assert _without_journal(root) == wanted, n
        assert not _has(root, tuning)

    assert _killed_anywhere(tmp_path, lost, settle, check) > 6


def a_boot_in_the_middle_of_an_apply_leaves_all_or_nothing_without_a_hand(tmp_path: Path) -> None:
    """The unit that looks is there before the first change; only before it, nothing is changed but the journal."""
    made, tuning, before = _ready(tmp_path / "made")
    before = {path: one for path, one in before.items() if not path.startswith(("proc", "sys"))}
    n, n_recovered, root = 0, 0, tmp_path / "root"
    while True:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(made, root, symlinks=True)
        try:
            apply(Kernel(root, passing=stop_after(n)), tuning)
        except Crash:
            is_watched = (root / trials.UNIT.lstrip("/")).exists() and (root / trials.WANTED.lstrip("/")).exists()
            boot(root)
            kernel = Kernel(root)
            if is_watched:
                n_recovered += settle(kernel) == Settled.RECOVERED
                if _has(root, tuning):
                    assert kernel.ran[-1] == ("systemctl", "reboot")
            else:
                undo(kernel)
            boot(root)
            assert not _has(root, tuning), n
            files = {path: one for path, one in _manifest(root).items() if not path.startswith(("proc", "sys"))}
            assert files == before, n
            n += 1
        else:
            break
    assert n_recovered > 10


def _systemd_boot() -> Machine:
    made = Machine()
    del made.texts["/boot/grub/grub.cfg"]
    made.texts |= {
        "/efi/loader/loader.conf": "",
        "/usr/bin/kernel-install": "",
        "/etc/kernel/cmdline": "root=/dev/sda2 ro\n",
        "/efi/loader/entries/a-6.0.0.conf": "title Debian\nversion 6.0.0\noptions root=/dev/sda2 ro\nlinux /a/6.0/linux\n",
        f"/efi/loader/entries/a-{RELEASE}.conf": f"title Debian\nversion {RELEASE}\noptions root=/dev/sda2 ro\n"
        f"linux /a/{RELEASE}/linux\ninitrd /a/{RELEASE}/initrd\n",
    }
    return made


def on_systemd_boot_an_entry_of_one_boot_has_the_words(tmp_path: Path) -> None:
    root, tuning, before = _ready(tmp_path, _systemd_boot())
    kernel = Kernel(root)
    apply(kernel, tuning)
    assert kernel.ran == [("bootctl", "set-oneshot", trials.ENTRY)]
    assert (root / KERNEL_FILE).read_text() == "root=/dev/sda2 ro\n", "later boots are as before"
    words = " ".join((*tuning.parameters, *trials.trial_words(trials.mark_of(tuning))))
    entry = (root / ENTRIES / trials.ENTRY).read_text()
    assert entry == (
        f"title Linux {RELEASE}, trial of dl3\nversion {RELEASE}\nlinux /a/{RELEASE}/linux\ninitrd /a/{RELEASE}/initrd\n"
        f"options root=/dev/sda2 ro {words}\n"
    )
    (root / "proc/cmdline").write_text(f"root=/dev/sda2 ro {words}\n")
    (root / ISOLATED).write_text("1\n")
    (root / "sys/devices/system/cpu/nohz_full").write_text("1\n")
    assert settle(kernel) == Settled.KEPT
    assert (root / KERNEL_FILE).read_text() == tuning.tried_step.after
    assert not (root / ENTRIES / trials.ENTRY).exists()
    assert [one[0] for one in kernel.ran] == ["bootctl", "bootctl", "kernel-install"]
    assert undo(kernel) == ()
    assert (root / KERNEL_FILE).read_text() == "root=/dev/sda2 ro\n"
    after = {path for path, one in _manifest(root).items() if one != before.get(path)}
    assert after == {"proc/cmdline", ISOLATED, "sys/devices/system/cpu/nohz_full"}


def without_an_entry_of_the_running_kernel_nothing_is_changed(tmp_path: Path) -> None:
    made = _systemd_boot()
    del made.texts[f"/efi/loader/entries/a-{RELEASE}.conf"]
    root, tuning, before = _ready(tmp_path, made)
    with pytest.raises(Fault, match=f"systemd-boot has no entry for Linux {RELEASE} in /efi/loader/entries"):
        apply(Kernel(root), tuning)
    assert _manifest(root) == before
