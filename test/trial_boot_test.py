"""Trial boots by GRUB and a real kernel on an emulated machine with two nodes: kept, without effect, with a panic.

dl3 host changes the files of a machine below a folder; these go to a disk that boots, and what the kernel shows comes back.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness.grub import Shown, boots, kernel_config, make_disk, read_file

from dl3.host.change import journal as journals
from dl3.host.change.apply import apply
from dl3.host.change.confirm import NO_BOOT, Settled, settle
from dl3.host.change.journal import BOOT_ID
from dl3.host.change.root import Root
from dl3.host.change.trial_boot import GRUB_MARK, GRUB_SCRIPT
from dl3.host.change.undo import undo
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.names import GRUB
from dl3.host.tuning.plan import plan
from dl3.host.tuning.request import Request

N_NODES, N_CORES, NODE_MIB = 2, 2, 512
NODE = 1  # of the network card
PATIENCE_S = 3600.0  # only ends what hangs
MENU = "boot/grub/grub.cfg"
BASE = "ro console=ttyS0 quiet"

pytestmark = pytest.mark.long  # the emulated boots take a minute on an idle machine


def _machine() -> list[str]:
    """Arguments of QEMU. CPUs of a node follow each other."""
    found = ["-smp", f"{N_NODES * N_CORES},sockets={N_NODES},cores={N_CORES}", "-m", f"{N_NODES * NODE_MIB}M"]
    for node in range(N_NODES):
        found += ["-object", f"memory-backend-ram,id=m{node},size={NODE_MIB}M"]
        found += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={node * N_CORES}-{(node + 1) * N_CORES - 1}"]
    return found


# The second core of the card's node: the first one stays with Linux.
WANTED = str(NODE * N_CORES + 1)


class Booted:
    """A machine below a folder, and its disk."""

    def __init__(self, folder: Path, request: Request) -> None:
        release, config = kernel_config()
        made = Machine(n_nodes=N_NODES, n_cores=N_CORES, interleaved=False, nic_nodes=(NODE,), memory_mib=NODE_MIB)
        made.texts |= {"/proc/sys/kernel/osrelease": f"{release}\n", f"/boot/config-{release}": config}
        made.texts |= {BOOT_ID: "0\n", "/proc/cmdline": f"{BASE}\n"}
        self.folder, self.disk = folder / "root", folder / "disk"
        made.write(self.folder)
        self.root = Root(self.folder, self.execute)
        self.ran: list[tuple[str, ...]] = []
        self.execute(("update-grub",))
        self.tuning = plan(read(self.root.tree), request)

    def execute(self, command: Sequence[str]) -> None:
        """update-grub: the scripts in order, and an entry as that of Debian has the words. Others are listed only."""
        self.ran.append(tuple(command))
        if tuple(command) != ("update-grub",):
            return
        shell = f'[ ! -e "{self.folder}{GRUB}" ] || . "{self.folder}{GRUB}"; printf %s "$GRUB_CMDLINE_LINUX"'
        words = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
        script = self.folder / GRUB_SCRIPT.lstrip("/")
        printed = subprocess.run([script], capture_output=True, text=True, check=True).stdout if script.exists() else ""
        entry = f"linux /boot/vmlinuz {BASE} {words}\n  initrd /boot/initrd\n"
        head = "serial\nterminal_output serial\nset timeout=0\n"
        (self.folder / MENU).write_text(f"{head}{printed}menuentry Linux {{\n  {entry}}}\n")

    def boot(self, panics: bool = False) -> list[Shown]:
        """Boot from a disk with the files as they are; what the last boot showed and GRUB wrote comes back."""
        make_disk(self.disk, (self.folder / MENU).parent, panics)
        shown = boots(self.disk, _machine(), PATIENCE_S)
        cpus = self.folder / "sys/devices/system/cpu"
        (self.folder / "proc/cmdline").write_text(f"{' '.join(shown[-1].words)}\n")
        (cpus / "isolated").write_text(f"{shown[-1].isolated}\n")
        (cpus / "nohz_full").write_text(f"{shown[-1].nohz_full}\n")
        for node, n in enumerate(shown[-1].gib):
            at = self.folder / f"sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB"
            (at / "nr_hugepages").write_text(f"{n}\n")
        boot_id = self.folder / BOOT_ID.lstrip("/")
        boot_id.write_text(f"{int(boot_id.read_text()) + len(shown)}\n")
        mark = self.folder / "boot/grub" / GRUB_MARK
        if mark.exists():
            mark.write_text(read_file(self.disk, f"/boot/grub/{GRUB_MARK}"))
        return shown

    def has_words(self, shown: Shown) -> bool:
        """Whether a boot had all new words, and none otherwise."""
        found = set(self.tuning.parameters) & set(shown.words)
        assert found in (set(), set(self.tuning.parameters)), "all or nothing"
        return bool(found)

    def why(self) -> str:
        """Why the trial boot failed."""
        journal = journals.read(self.root)
        return journal.trial.said if journal and journal.trial else ""


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def words_that_work_are_kept(tmp_path: Path) -> None:
    one = Booted(tmp_path, Request())
    apply(one.root, one.tuning)
    (shown,) = one.boot()
    assert one.has_words(shown)
    assert [word for word in shown.words if word.startswith(("panic=", "dl3.trial="))]
    assert shown.isolated == WANTED
    assert settle(one.root) == Settled.KEPT, one.why()
    one.execute(("update-grub",))  # as a new kernel's package does
    (shown,) = one.boot()
    assert one.has_words(shown)
    assert not [word for word in shown.words if word.startswith(("panic=", "dl3.trial="))]
    assert shown.isolated == WANTED
    assert settle(one.root) == Settled.NOTHING
    assert undo(one.root) == ()
    assert f"  linux /boot/vmlinuz {BASE} \n" in (one.folder / MENU).read_text()


def a_trial_boot_that_panics_is_followed_by_the_old_one(tmp_path: Path) -> None:
    one = Booted(tmp_path, Request())
    apply(one.root, one.tuning)
    trial, after = one.boot(panics=True)  # nobody touches the machine between them
    assert one.has_words(trial)
    assert not one.has_words(after)
    assert (trial.isolated, after.isolated) == (WANTED, "")
    assert settle(one.root) == Settled.FAILED
    assert one.why() == NO_BOOT
    assert not (one.folder / GRUB.lstrip("/")).exists()


def pages_that_the_kernel_does_not_find_are_named_and_given_up(tmp_path: Path) -> None:
    one = Booted(tmp_path, Request(page="1G"))
    assert f"hugepages={NODE}:1" in one.tuning.parameters
    apply(one.root, one.tuning)
    (shown,) = one.boot()
    assert one.has_words(shown)
    assert shown.gib == (0,) * N_NODES, f"a node has {NODE_MIB} MiB"
    assert settle(one.root) == Settled.FAILED
    assert f"huge pages of node {NODE}: " in one.why()
    assert "isolcpus" not in one.why()
    assert one.ran[-1] == ("systemctl", "reboot")
    (shown,) = one.boot()
    assert not one.has_words(shown)
