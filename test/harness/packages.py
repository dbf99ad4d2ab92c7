"""Debian packages of this commit, and clean roots to install them in."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.wired import TOP

SUITES = ("bookworm", "trixie")
HOURS = 3600.0


def build(suite: str, to: Path, more: Mapping[str, str], umask: int = -1) -> dict[str, bytes]:
    """The packages by name, also in the new folder `to`; `more` is added to the environment."""
    command = [str(TOP / "tools" / "make-packages"), suite]
    run = subprocess.run(
        command, cwd=TOP, env={**os.environ, **more}, umask=umask, capture_output=True, text=True, timeout=HOURS
    )
    assert run.returncode == 0, run.stdout + run.stderr
    made = sorted((TOP / "build" / "packages" / suite).glob("*.deb"))
    to.mkdir()
    return {path.name: Path(shutil.copy(path, to)).read_bytes() for path in made}


def in_root(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script there."""
    command = ["unshare", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", str(root), "sh", "-ec", script]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=HOURS)


def make_root(suite: str, packages: Path, root: Path, more: Sequence[str] = ()) -> None:
    """A clean Debian with these packages of its own more, and ours in /packages."""
    include = [f"--include={','.join(more)}"] if more else []
    command = ["mmdebstrap", "--quiet", "--variant=apt", *include, suite, str(root)]
    subprocess.run(command, check=True, capture_output=True, timeout=HOURS)
    shutil.copytree(packages, root / "packages", ignore=shutil.ignore_patterns("*dbgsym*"))
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")


def install(root: Path) -> None:
    """What is in /packages, with all that they need from the distribution's mirror."""
    run = in_root(root, "apt-get update -q && apt-get install -q -y --no-install-recommends /packages/*.deb")
    assert run.returncode == 0, run.stdout + run.stderr
