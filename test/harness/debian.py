"""A Debian of its own on a disk that boots by its own GRUB, with dl3 as its package installs it. Made once, then copied.

Needs a Debian mirror and the index of Python packages.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.emulated import emulated
from harness.grub import PARTITION, bootable, fill
from harness.guest import GUEST
from harness.packages import in_root
from harness.wired import TOP

PACKAGES = (
    *("linux-image-amd64", "grub-pc", "systemd-sysv", "udev", "dbus", "kmod", "initramfs-tools", "python3", "iproute2"),
    *("driverctl", "qemu-guest-agent", "openssh-server", "procps", "irqbalance", "ethtool"),
)
SIZE_MIB = 3072
HOME_OF_DL3 = "usr/lib/dl3"
OWN = ("dl3", "schema")  # there, of this tree
KERNEL = "root/kernel.deb"  # uncompressed, as unpacking takes minutes on an emulated machine
KEY = "key"  # beside the disk: of ssh to it
UNIQUE = "7b1d5f0e-3c1a-4f5e-9d53-0d1300000001"  # of the file system
# Kernels look at startup whether the timer ticks, in less time than an emulated one needs beside other work.
WORDS = "console=ttyS0 intel_iommu=on no_timer_check"
BASE = f"ro quiet {WORDS}"
MANAGEMENT, FORWARDING = "virtio_net", "e1000e"  # drivers of the cards
FILES = {
    "etc/fstab": f"UUID={UNIQUE} / ext4 defaults 0 1\n",
    "etc/hostname": "guest\n",
    "etc/default/grub": 'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
    f'GRUB_CMDLINE_LINUX="{WORDS}"\nGRUB_TERMINAL=serial\n',
    "etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
    "etc/systemd/network/10-management.network": f"[Match]\nDriver={MANAGEMENT}\n[Network]\nDHCP=ipv4\n",
    "etc/systemd/network/20-card.network": f"[Match]\nDriver={FORWARDING}\n[Network]\nAddress=192.0.2.1/24\n"
    "ConfigureWithoutCarrier=yes\n[Link]\nRequiredForOnline=no\n",
}
TIMERS = ("apt-daily", "apt-daily-upgrade", "dpkg-db-backup", "e2scrub_all", "fstrim", "logrotate", "man-db")
FIRST_MENU = f"""serial
terminal_output serial
linux /boot/vmlinuz root=UUID={UNIQUE} {BASE}
initrd /boot/initrd
boot
"""
WHEELS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "any")
# Few modules: the disk is copied for each test, and unpacking takes long on an emulated machine.
MAKE = f"""
few() {{
	cd "$1"
	rm -r sound drivers/net/wireless
	keep=$(printf " ! -name %s" virtio vfio net block char iommu pci firmware)
	find drivers -mindepth 1 -maxdepth 1 $keep -exec rm -r {{}} +
	find drivers/net/ethernet -mindepth 1 -maxdepth 1 ! -name intel -exec rm -r {{}} +
}}
release=$(ls /lib/modules)
few "/lib/modules/$release/kernel"
depmod "$release"
update-initramfs -u -k all
systemctl enable systemd-networkd
systemctl mask {" ".join(f"{one}.timer" for one in TIMERS)}
grub-editenv /boot/grub/grubenv create
cp -r /usr/lib/grub/i386-pc /boot/grub/
python3 -m compileall -q /{HOME_OF_DL3}
cd /root
apt-get update -q
apt-get download "linux-image-$release"
dpkg-deb -R linux-image-*.deb kernel
few "$(find "$PWD/kernel" -path "*/modules/$release/kernel" -type d)"
cd /root
dpkg-deb -Znone -b kernel kernel.deb
rm -r kernel linux-image-*.deb /var/lib/apt/lists/* /usr/share/doc /usr/share/man /usr/share/locale
apt-get clean
"""


def _run(command: Sequence[str | Path], cwd: Path = TOP) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"


def _python_packages(root: Path) -> None:
    """Those that dl3 needs, for the Python there."""
    version = in_root(root, "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").stdout.strip()
    pip: list[str | Path] = [TOP / "build/venv/bin/python", "-m", "pip", "--disable-pip-version-check", "install"]
    platforms = [word for one in WHEELS for word in ("--platform", one)]
    locked = ["--quiet", "--no-compile", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    to: list[str | Path] = ["--python-version", version, *platforms, "--target", root / HOME_OF_DL3]
    _run([*pip, *locked, *to, "--requirement", TOP / "requirements.txt"])
    for path in (root / HOME_OF_DL3).glob("numpy*"):  # large, and for reports only
        shutil.rmtree(path)


def _make_root(suite: str, root: Path) -> None:
    """The files of the disk, without dl3 itself."""
    hook = 'echo "grub-pc grub-pc/install_devices_empty boolean true" | chroot "$1" debconf-set-selections'
    options = ["--quiet", "--variant=apt", f"--include={','.join(PACKAGES)}", f"--essential-hook={hook}"]
    _run(["mmdebstrap", *options, suite, root])
    _python_packages(root)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    made = in_root(root, MAKE)
    assert made.returncode == 0, made.stdout + made.stderr
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        (found,) = (root / "boot").glob(pattern)
        (root / "boot" / name).symlink_to(found.name)
    (root / "boot/grub/grub.cfg").write_text(FIRST_MENU)
    shutil.copy(TOP / "debian/dl3-command", root / "usr/bin/dl3")
    (root / "usr/bin/dl3").chmod(0o755)


def _make_disk(folder: Path, root: Path) -> None:
    """A disk that boots."""
    _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / KEY])
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / f"{KEY}.pub", root / "root/.ssh/authorized_keys")
    core = "grub-mkimage -O i386-pc -d /usr/lib/grub/i386-pc -p '(hd0,msdos1)/boot/grub' -o /core"
    made = in_root(root, f"{core} biosdisk part_msdos ext2 normal linux loadenv serial")
    assert made.returncode == 0, made.stderr
    (root / "core").rename(folder / "core")
    disk = folder / "disk"
    fill(disk, root, SIZE_MIB, ("-U", UNIQUE))
    bootable(disk, folder / "core", root / "usr/lib/grub/i386-pc/boot.img")
    with emulated(disk) as machine:  # only there does GRUB find its disk
        machine.must("update-grub")
        machine.off()


def made(suite: str) -> Path:
    """The folder with the disk and the root that it was filled from."""
    folder = GUEST / f"debian-{suite}"
    GUEST.mkdir(parents=True, exist_ok=True)
    source = (
        Path(__file__).read_bytes()
        + (TOP / "requirements.txt").read_bytes()
        + (TOP / "debian/dl3-command").read_bytes()
    )
    stamp = hashlib.sha256(source).hexdigest()
    with (GUEST / f"debian-{suite}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _make_root(suite, folder / "root")
            _make_disk(folder, folder / "root")
            (folder / "stamp").write_text(stamp)
    return folder


def _own_files(root: Path) -> list[Path]:
    """dl3 of this tree, put there and compiled; relative to the root."""
    home = root / HOME_OF_DL3
    for name in OWN:
        shutil.rmtree(home / name, ignore_errors=True)
        left_out = shutil.ignore_patterns("*_test.py", "conftest.py", "__pycache__")
        shutil.copytree(TOP / name, home / name, ignore=left_out)
    how = "--invalidation-mode unchecked-hash"  # the disk has other times
    compiled = in_root(root, f"python3 -m compileall -q {how} /{HOME_OF_DL3}/dl3")
    assert compiled.returncode == 0, compiled.stderr
    return sorted(path.relative_to(root) for name in OWN for path in (home / name, *(home / name).rglob("*")))


def copy_disk(suite: str, to: Path) -> Path:
    """A fresh disk with dl3 of this tree; returns the key for ssh."""
    folder = made(suite)
    root = folder / "root"
    _run(["cp", "--sparse=always", folder / "disk", to])
    lines = []
    for path in _own_files(root):
        is_folder = (root / path).is_dir()
        lines.append(f"mkdir /{path}" if is_folder else f"write {root / path} /{path}")
    commands = to.with_suffix(".commands")
    commands.write_text("\n".join(lines))
    _run(["debugfs", "-w", "-f", commands, f"{to}{PARTITION}"])
    commands.unlink()
    for name in OWN:
        shutil.rmtree(root / HOME_OF_DL3 / name)
    return folder / KEY
