"""What a guest boots: Debian's own kernel, and a small initial RAM disk that mounts this machine's files read-only (9p),
puts an overlay above them, and runs one script. The guest's userland is thereby that of this machine; what it writes is
discarded with it. No image of a disk and no loop device is needed.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dl3.lab.command import run
from dl3.model.fault import Fault, UsageFault

MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")  # for the root file system
PROGRAMS = {"busybox": "busybox-static", "cpio": "cpio", "depmod": "kmod", "dpkg-deb": "dpkg", "apt-get": "apt"}
NEEDED_MIB = 900  # of disk, while it is made
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose root /low
mount -t tmpfs -o size=1g up /up
mkdir /up/upper /up/work
mount -t overlay -o lowerdir=/low,upperdir=/up/upper,workdir=/up/work all /new
for word in $(cat /proc/cmdline); do
	case $word in guest.*) export "${word#guest.}" ;; esac
done
cp "/new$script" /script
mkdir -p "/new/lib/modules/$(uname -r)"
mount --bind "/new$modules/lib/modules/$(uname -r)" "/new/lib/modules/$(uname -r)"
mkdir /up/top
mount --bind "/new$top" /up/top
mount -t tmpfs run /new/run
mount -t tmpfs tmp /new/tmp
case $top/ in /run/* | /tmp/*)
	mkdir -p "/new$top"
	mount --bind /up/top "/new$top"
	;;
esac
for part in proc sys dev; do mount --move /$part /new/$part; done
mkdir -p /new/dev/pts /new/dev/shm
mount -t tmpfs shm /new/dev/shm
mkdir -p /new/tmp/bin
cp /bin/busybox /new/tmp/bin/busybox
cp /script /new/tmp/guest-script
exec switch_root /new /bin/bash -c 'echo "guest: up"; bash /tmp/guest-script </dev/null 2>&1; echo "guest: left with $?"
	/tmp/bin/busybox poweroff -f'
"""


def cache_folder() -> Path:
    """Where the user's guest is kept; UsageFault for a folder that a guest does not see."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dl3" / "guest"
    if {"run", "tmp"} & {*folder.parts[1:2]}:
        raise UsageFault(
            f"a guest cannot read {folder}, because it has a {folder.parents[-2]} of its own: set XDG_CACHE_HOME"
        )
    return folder


def stamp() -> str:
    """What the image depends on; it is made again if that has changed."""
    return f"{MODULES}\n{INIT}"


def is_made(folder: Path) -> bool:
    """Whether the image is there."""
    with suppress(OSError):
        return (folder / "stamp").read_text(encoding="utf-8") == stamp()
    return False


def need_packages(programs: dict[str, str]) -> None:
    """UsageFault that names the packages of missing programs."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = sorted({package for program, package in programs.items() if not shutil.which(program, path=path)})
    if missing:
        raise UsageFault(f"{' and '.join(missing)} not installed: apt install {' '.join(missing)}")


def need_disk(folder: Path) -> None:
    """UsageFault if the image does not fit."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free >> 20
    if free < NEEDED_MIB:
        raise UsageFault(
            f"{there} has {free:,} MiB free, and the guest's kernel needs {NEEDED_MIB:,} MiB: free some space"
        )


def download(work: Path) -> Path:
    """The package of the kernel that Debian installs by default."""
    listed = run(["apt-cache", "depends", "linux-image-amd64"])
    found = re.search(r"Depends: (linux-image-\S+)", listed)
    if not found:
        run(["apt-get", "update", "-qq"], 300.0)
        found = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", "linux-image-amd64"]))
    if not found:
        raise Fault("apt knows no kernel 'linux-image-amd64' for a guest: is a Debian mirror in /etc/apt?")
    fetch = ["env", "-C", str(work), "apt-get", "download", "-qq", found[1]]
    try:
        run(fetch, 600.0)
    except Fault:
        run(["apt-get", "update", "-qq"], 300.0)
        try:
            run(fetch, 600.0)
        except Fault as error:
            raise Fault(
                f"apt cannot download the kernel '{found[1]}' for a guest: is a Debian mirror in /etc/apt?"
            ) from error
    return next(work.glob("linux-image-*.deb"))


def modules_of(kernel: Path, version: str) -> list[Path]:
    """The files of MODULES and of what they need, in loading order."""
    command = ["modprobe", "-d", str(kernel), "-S", version, "--show-depends"]
    lines = [line.split() for module in MODULES for line in run([*command, module]).splitlines()]
    return list(dict.fromkeys(Path(line[1]) for line in lines if line[0] == "insmod"))


def pack(work: Path, modules: list[Path]) -> None:
    """The RAM disk."""
    ram = work / "ram"
    for name in ("bin", "dev", "proc", "sys", "low", "up", "new", "modules"):
        (ram / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "busybox", ram / "bin" / "busybox")
    for n, module in enumerate(modules, 100):
        shutil.copy(module, ram / "modules" / f"{n}-{module.name}")
    (ram / "init").write_text(INIT, encoding="utf-8")
    (ram / "init").chmod(0o755)
    names = "\n".join(sorted(str(path.relative_to(ram)) for path in ram.rglob("*")))
    with (work / "initrd").open("wb") as file:
        command = ["cpio", "--quiet", "-o", "-H", "newc", "-D", str(ram)]
        subprocess.run(command, input=names.encode(), stdout=file, check=True)


def make(folder: Path) -> None:
    """Make it in `folder`."""
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder) as name:
        work = Path(name)
        kernel = work / "kernel"
        run(["dpkg-deb", "-x", str(download(work)), str(kernel)], 600.0)
        version = next((kernel / "lib" / "modules").iterdir()).name
        run(["depmod", "-b", str(kernel), version], 300.0)
        pack(work, modules_of(kernel, version))
        (folder / "stamp").unlink(missing_ok=True)
        for old in (folder / "kernel", folder / "vmlinuz", folder / "initrd"):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        kernel.rename(folder / "kernel")
        shutil.copy(next((folder / "kernel" / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
        (work / "initrd").rename(folder / "initrd")
        (folder / "stamp").write_text(stamp(), encoding="utf-8")


def made(folder: Path, say: Callable[[str], None] = lambda _: None) -> Path:
    """The folder with the image, made if it is not there; `say` is told if that takes a while."""
    if is_made(folder):
        return folder
    need_packages(PROGRAMS)
    need_disk(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_made(folder):
            say(f"making the guest's kernel and RAM disk in {folder}: this is done once")
            for left in folder.glob("making-*"):
                shutil.rmtree(left)
            make(folder)
    return folder
