"""A newer QEMU than this machine's Debian has: that of Debian unstable, in a root of its own. Its igb has VFs."""

import fcntl
import subprocess
from pathlib import Path

from harness.guest import GUEST

ROOT = GUEST / "unstable"
# A mirror that is a copy of some day has an old index; ours is not the one to judge it.
OPTIONS = ("--quiet", "--variant=apt", '--aptopt=Acquire::Check-Valid-Until "false"', "--include=qemu-system-x86")
INSIDE = 'mkdir -p "$1$2"; mount --bind "$2" "$1$2"; root=$1; shift 2; exec chroot "$root" qemu-system-x86_64 "$@"'


def _make() -> None:
    GUEST.mkdir(parents=True, exist_ok=True)
    with (GUEST / "unstable.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (ROOT / "usr/bin/qemu-system-x86_64").exists():
            made = subprocess.run(["mmdebstrap", *OPTIONS, "sid", ROOT], capture_output=True, text=True)
            assert made.returncode == 0, made.stderr


def program(folder: Path) -> tuple[str, ...]:
    """QEMU, with access to a folder of this machine only."""
    _make()
    return ("unshare", "--mount", "sh", "-ec", INSIDE, "sh", str(ROOT), str(folder))
