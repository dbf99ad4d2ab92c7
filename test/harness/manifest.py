"""All files of a disk that is not in use: kind, mode, owner and contents. Read without the system on it."""

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

from harness.grub import PARTITION

# What a Debian writes by itself, and what the package manager does while it installs a kernel again.
OTHERS = (
    *("var/log", "var/lib/systemd", "var/lib/dpkg", "var/cache", "var/tmp", "var/lib/private", "tmp", "run", "dev"),
    *("lost+found", "boot/grub/grubenv", "usr/share/doc"),  # the disk lacks documents, the kernel brings its own
)
OTHERS_TEXT = ("boot/initrd.img-",)  # made again: the times of its files differ
Manifest = dict[str, tuple[str, ...]]


def _one(path: Path, name: str) -> tuple[str, ...]:
    found = path.lstat()
    kind, owner = stat.filemode(found.st_mode), f"{found.st_uid}:{found.st_gid}"
    if path.is_symlink():
        return kind, owner, str(path.readlink())
    if not path.is_file() or name.startswith(OTHERS_TEXT):
        return kind, owner
    return kind, owner, hashlib.sha256(path.read_bytes()).hexdigest()


def manifest(disk: Path) -> Manifest:
    """By path."""
    folder = disk.with_suffix(".files")
    folder.mkdir()
    subprocess.run(["debugfs", "-R", f"rdump / {folder}", f"{disk}{PARTITION}"], check=True, capture_output=True)
    found = {}
    for top, folders, files in os.walk(folder):
        at = Path(top).relative_to(folder)
        folders[:] = [one for one in folders if str(at / one) not in OTHERS]
        for one in (*folders, *files):
            name = str(at / one)
            if name not in OTHERS:
                found[name] = _one(folder / name, name)
    shutil.rmtree(folder)
    return found


def difference(one: Manifest, other: Manifest) -> dict[str, tuple[tuple[str, ...] | None, tuple[str, ...] | None]]:
    """What differs, by path."""
    return {path: (one.get(path), other.get(path)) for path in {*one, *other} if one.get(path) != other.get(path)}
