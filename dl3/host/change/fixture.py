"""A machine below a folder that behaves like a kernel where drivers are bound. Used by tests, not by commands."""

import os
import re
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from dl3.host.change.journal import BOOT_ID
from dl3.host.change.root import Root
from dl3.host.change.steps import TRIAL_TEXT
from dl3.host.change.trial_boot import GRUB_MARK, GRUB_SCRIPT, VARIABLE, WORD
from dl3.host.facts.read import read
from dl3.host.fixture import Machine
from dl3.host.tuning.names import GRUB, PARAMETERS
from dl3.host.tuning.parameters import words_in
from dl3.host.tuning.plan import Tuning, plan
from dl3.host.tuning.request import Request
from dl3.model.fault import Fault

CARD = "0000:03:00.0"
REQUEST = Request(nics=(CARD,), binds=True)
Manifest = dict[str, tuple[str, int, str]]


class Crash(BaseException):
    """The process is killed: nothing of it runs any more."""


def _unused(_: Sequence[str]) -> None:
    """Never called."""


@dataclass(frozen=True)
class Kernel(Root):
    """A folder that behaves like sysfs where drivers are bound. Commands are listed."""

    own_driver: str = "ixgbe"
    ran: list[tuple[str, ...]] = field(default_factory=list)
    execute: Callable[[Sequence[str]], None] = field(default=_unused)
    fails: str = ""  # a path that refuses to be written

    def run(self, command: Sequence[str]) -> None:
        """List it."""
        self.passing(f"run {command[0]}")
        self.ran.append(tuple(command))

    def poke(self, path: str, value: str) -> None:
        """As the kernel does."""
        if self.fails and self.fails in path:
            raise Fault(f"the kernel refuses '{value}' for {path}: Invalid argument")
        if path.endswith("/driver/unbind"):
            self.passing(f"poke {path}")
            self.card(value).joinpath("driver").unlink()
        elif path.endswith("drivers_probe"):
            self.passing(f"poke {path}")
            card = self.card(value)
            override = (card / "driver_override").read_text().strip()
            driver = self.own_driver if override == "(null)" else override
            (card / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        else:
            super().poke(path, value or "(null)")
            if path.endswith("/sriov_numvfs"):
                self.show_vfs(PurePosixPath(path).parent.name, int(value))

    def show_vfs(self, pf: str, n: int) -> None:
        """The files of as many VFs, or of none. They get functions of the next bus."""
        card = self.card(pf)
        for link in card.glob("virtfn*"):
            shutil.rmtree(self.card(link.readlink().name))
            link.unlink()
        for vf in range(n):
            address = f"{pf[:5]}fe:{vf // 8:02x}.{vf % 8}"
            at = self.card(address)
            at.mkdir(parents=True)
            for name, text in (("class", "0x020000"), ("driver_override", "(null)"), ("numa_node", "0")):
                (at / name).write_text(f"{text}\n")
            (at / "physfn").symlink_to(f"../{pf}")
            (card / f"virtfn{vf}").symlink_to(f"../{address}")

    def card(self, address: str) -> Path:
        """The folder of a PCI function."""
        return self.folder / f"sys/bus/pci/devices/{address}"


def machine() -> Machine:
    """One card to bind, one for management, and something of each kind of step."""
    made = Machine(n_cores=2, n_threads=2, nics=(CARD,), governor="powersave", idle_states=(("C1", 2), ("C6", 170)))
    made.nic("0000:81:00.0", 0, "mgmt")
    made.default_route(4, "mgmt")
    made.service("NetworkManager")
    made.irq(40, "eth0-rx", "1")
    made.texts["/sys/kernel/mm/ksm/run"] = "1\n"
    return made


def manifest(root: Path) -> Manifest:
    """All files below a folder: kind, mode, contents."""
    found: Manifest = {}
    for folder, _, _ in os.walk(root):
        for one in os.scandir(folder):
            mode, name = stat.S_IMODE(one.stat(follow_symlinks=False).st_mode), one.path.removeprefix(f"{root}/")
            if one.is_symlink():
                found[name] = ("link", 0, os.readlink(one.path))  # noqa: PTH115 - many files, and pathlib is slow
            elif one.is_dir():
                found[name] = ("folder", mode, "")
            else:
                with open(one.path) as file:  # noqa: PTH123
                    found[name] = ("file", mode, file.read())
    return found


def ready(tmp_path: Path) -> tuple[Path, Tuning]:
    """The machine, and a plan for it."""
    root = tmp_path / "root"
    machine().write(root)
    return root, plan(read(Root(root).tree), REQUEST)


def boot(root: Path, takes_mark: bool = True) -> None:
    """What GRUB and the kernel do. The words of the trial are used if its mark is found, which is cleared first."""
    texts = {path: root / path.lstrip("/") for path in (GRUB, GRUB_SCRIPT, f"/boot/grub/{GRUB_MARK}", "/proc/cmdline")}
    have = {path: file.read_text() if file.exists() else "" for path, file in texts.items()}
    words = [
        word for word in have["/proc/cmdline"].split() if word.partition("=")[0] not in (*PARAMETERS, "panic", WORD)
    ]
    mark = re.search(rf"^{VARIABLE}=(\w+)$", have[f"/boot/grub/{GRUB_MARK}"], re.MULTILINE)
    if have[GRUB] == TRIAL_TEXT:
        both = re.findall(r'set dl3_words="(.*)"', have[GRUB_SCRIPT])
        words += both[-1 if mark and takes_mark else 0].split() if both else []
        if mark and takes_mark:
            texts[f"/boot/grub/{GRUB_MARK}"].write_text(
                have[f"/boot/grub/{GRUB_MARK}"].replace(mark[0], f"{VARIABLE}=")
            )
    else:
        words += words_in(have[GRUB])
    texts["/proc/cmdline"].write_text(f"{' '.join(words)}\n")
    found = dict(word.split("=", 1) for word in words if "=" in word)
    cpus = root / "sys/devices/system/cpu"
    (cpus / "isolated").write_text(f"{found.get('isolcpus', '').removeprefix('managed_irq,domain,')}\n")
    (cpus / "nohz_full").write_text(f"{found.get('nohz_full', '(null)')}\n")
    for file in root.glob("proc/irq/*/smp_affinity_list"):
        file.write_text(f"0-{len(list(cpus.glob('cpu[0-9]*'))) - 1}\n")
    number = root / BOOT_ID.lstrip("/")
    number.parent.mkdir(exist_ok=True)
    number.write_text(f"{int(number.read_text()) + 1 if number.exists() else 1}\n")


def stop_after(n: int) -> Callable[[str], None]:
    """Kills the process before change number `n`."""
    left = [n]

    def passing(_: str) -> None:
        if not left[0]:
            raise Crash
        left[0] -= 1

    return passing
