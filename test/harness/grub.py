"""A disk that boots Debian's kernel by GRUB on an emulated machine, with a small RAM disk that says what the kernel did.

No loop device is needed: mke2fs fills the file system, and GRUB's first sectors are written as they are.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.guest import GUEST, make_guest

PACKAGES = ("grub-common", "grub-pc-bin")
CORE = ("biosdisk", "part_msdos", "ext2", "normal", "linux", "loadenv", "serial")
SECTOR, START, SIZE_MIB = 512, 1 << 20, 64
PARTITION = f"?offset={START}"  # of a disk, for debugfs
PARTITION_AT, CODE_BYTES = 446, 440  # in the first sector
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
cpus=/sys/devices/system/cpu
echo "boot: $(cat /proc/cmdline)"
echo "effect: isolated=$(cat $cpus/isolated) nohz_full=$(cat $cpus/nohz_full)"
for node in /sys/devices/system/node/node*; do
	echo "gib: $(cat $node/hugepages/hugepages-1048576kB/nr_hugepages)"
done
[ -e /panics ] && grep -q dl3.trial= /proc/cmdline && exit 1
poweroff -f
"""


@dataclass(frozen=True)
class Shown:
    """What a boot showed. `gib`: pages of 1 GiB on each node."""

    words: tuple[str, ...]
    isolated: str
    nohz_full: str
    gib: tuple[int, ...]


def _grub() -> Path:
    """GRUB's programs and modules, from the packages of Debian."""
    found = GUEST / "grub"
    if not found.exists():
        work = GUEST / "grub-making"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        download = ["apt-get", "download", "-qq", *PACKAGES]
        if subprocess.run(download, cwd=work, capture_output=True).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
            subprocess.run(download, cwd=work, check=True, capture_output=True)
        for package in work.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, work], check=True)
            package.unlink()
        work.rename(found)
    return found


def _ram_disk(to: Path, panics: bool) -> None:
    """busybox and our first process; `panics`: the trial boot's ends, which no kernel survives."""
    ram = to.with_suffix(".ram")
    for name in ("bin", "proc", "sys", "dev"):
        (ram / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", ram / "bin" / "busybox")
    (ram / "init").write_text(INIT)
    (ram / "init").chmod(0o755)
    if panics:
        (ram / "panics").touch()
    subprocess.run(["sh", "-c", f"find . | cpio --quiet -o -H newc >{to}"], cwd=ram, check=True)
    shutil.rmtree(ram)


def kernel_config() -> tuple[str, str]:
    """The release of the guest's kernel, and how it was built."""
    make_guest()
    (path,) = (GUEST / "kernel" / "boot").glob("config-*")
    return path.name.removeprefix("config-"), path.read_text()


def fill(disk: Path, root: Path, size_mib: int, more: Sequence[str] = ()) -> None:
    """A disk with one file system with all files of a folder."""
    with disk.open("wb") as file:
        file.truncate(size_mib << 20)
    blocks, at = f"{size_mib - (START >> 20)}M", f"offset={START}"
    command: list[str | Path] = ["mke2fs", "-q", "-F", "-t", "ext4", *more, "-d", root, "-E", at, disk, blocks]
    subprocess.run(command, check=True)


def bootable(disk: Path, core: Path, first: Path) -> None:
    """Put GRUB and the table of partitions before the file system."""
    entry = bytes([0x80, 0, 0, 0, 0x83, 0, 0, 0])
    extent = (START // SECTOR).to_bytes(4, "little") + ((disk.stat().st_size - START) // SECTOR).to_bytes(4, "little")
    with disk.open("r+b") as file:
        file.write(first.read_bytes()[:CODE_BYTES])
        file.seek(PARTITION_AT)
        file.write((entry + extent).ljust(64, b"\0") + b"\x55\xaa")
        file.write(core.read_bytes())
    assert SECTOR + core.stat().st_size <= START


def make_disk(disk: Path, grub_files: Path, panics: bool = False) -> None:
    """A disk with GRUB, the files of `grub_files` beside its menu, a kernel and a RAM disk."""
    modules, root = _grub() / "usr/lib/grub/i386-pc", disk.with_suffix(".root")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(grub_files, root / "boot" / "grub")
    shutil.copytree(modules, root / "boot" / "grub" / "i386-pc", ignore=shutil.ignore_patterns("*.img"))
    shutil.copy(GUEST / "vmlinuz", root / "boot" / "vmlinuz")
    _ram_disk(root / "boot" / "initrd", panics)
    fill(disk, root, SIZE_MIB)
    core = disk.with_suffix(".core")
    image: list[str | Path] = [
        _grub() / "usr/bin/grub-mkimage",
        "-O",
        "i386-pc",
        "-d",
        modules,
        "-p",
        "(hd0,msdos1)/boot/grub",
    ]
    subprocess.run([*image, "-o", core, *CORE], check=True)
    bootable(disk, core, modules / "boot.img")
    shutil.rmtree(root)


def read_file(disk: Path, path: str) -> str:
    """A file of the disk."""
    command = ["debugfs", "-R", f"cat {path}", f"{disk}{PARTITION}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shown_in(text: str) -> list[Shown]:
    """What each boot showed, from all that the guest printed."""
    found = []
    for one in re.split(r"^boot: ", text, flags=re.MULTILINE)[1:]:
        effect = re.search(r"^effect: isolated=(.*) nohz_full=(.*)$", one, re.MULTILINE)
        assert effect, text[-3000:]
        gib = tuple(int(n) for n in re.findall(r"^gib: (\d+)$", one, re.MULTILINE))
        found.append(Shown(tuple(one.splitlines()[0].split()), effect[1], effect[2], gib))
    assert found, text[-3000:]
    return found


def boots(disk: Path, machine: Sequence[str], timeout_s: float) -> list[Shown]:
    """Boot until the guest switches itself off; what each boot showed."""
    command = [
        *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", *machine),
        *("-nodefaults", "-display", "none", "-serial", "stdio", "-drive", f"file={disk},format=raw,if=virtio"),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return shown_in(done.stdout.decode(errors="replace").replace("\r", ""))
