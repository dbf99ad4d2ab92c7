"""Packages for Debian 12 and 13, built in clean roots: two builds are equal, and what is installed works and goes."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from harness.wired import TOP

SUITES = ("bookworm", "trixie")
HOURS = 3600.0
PROGRAMS = ("dl3", "dl3d", "dl3gen")
ELSEWHERE = {"SOURCE_PATH": "/srv/another/place/dl3-sources", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"}
OTHER_UMASK = 0o077

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes on all cores


def _build(suite: str, to: Path, more: Mapping[str, str], umask: int = -1) -> dict[str, bytes]:
    """The packages by name."""
    command = [str(TOP / "tools" / "make-packages"), suite]
    run = subprocess.run(
        command, cwd=TOP, env={**os.environ, **more}, umask=umask, capture_output=True, text=True, timeout=HOURS
    )
    assert run.returncode == 0, run.stdout + run.stderr
    made = sorted((TOP / "build" / "packages" / suite).glob("*.deb"))
    to.mkdir()
    return {path.name: Path(shutil.copy(path, to)).read_bytes() for path in made}


def _in_root(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", str(root), "sh", "-ec", script]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=HOURS)


@pytest.fixture(scope="module", params=SUITES)
def packages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Suite, and a folder with its packages, which two builds made alike."""
    suite: str = request.param
    folder = tmp_path_factory.mktemp(suite)
    first = _build(suite, folder / "first", {})
    again = _build(suite, folder / "again", ELSEWHERE, OTHER_UMASK)
    assert {name.split("_")[0] for name in first} >= set(PROGRAMS)
    assert [name for name in first if first[name] != again.get(name)] == []
    assert first.keys() == again.keys()
    return suite, folder / "first"


@pytest.fixture
def root(packages: tuple[str, Path], tmp_path: Path) -> Path:
    """A clean root of the suite, with the packages in /packages."""
    suite, folder = packages
    made = tmp_path / "root"
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=apt", suite, str(made)],
        check=True,
        capture_output=True,
        timeout=HOURS,
    )
    shutil.copytree(folder, made / "packages", ignore=shutil.ignore_patterns("*dbgsym*"))
    shutil.copy("/etc/resolv.conf", made / "etc" / "resolv.conf")
    return made


def installed_programs_work_and_a_purge_leaves_nothing(root: Path) -> None:
    run = _in_root(root, "apt-get update -q && apt-get install -q -y --no-install-recommends /packages/*.deb")
    assert run.returncode == 0, run.stdout + run.stderr
    version = _in_root(root, "for program in dl3 dl3d dl3gen; do $program --version; done")
    assert version.stdout.split()[::2] == list(PROGRAMS), version.stderr
    check = _in_root(
        root,
        "zcat -f /usr/share/doc/dl3d/examples/dl3d.yaml* | sed 's/0000:01:00.\\(.\\)/net_null\\1/' > /tmp/f.yaml;"
        "dl3d --check /tmp/f.yaml",
    )
    assert (check.stderr, "configuration OK" in check.stdout) == ("", True), check.stdout
    groups = _in_root(root, "for command in bench show host flow acl; do dl3 $command --help; done")
    assert groups.returncode == 0, groups.stderr
    asked = _in_root(root, "dl3 show ports")
    assert asked.returncode == 1
    assert "Traceback" not in asked.stderr
    assert len(asked.stderr.splitlines()) == 1
    assert (
        _in_root(root, "test -s /usr/share/man/man1/dl3-show.1.gz && test -s /usr/share/man/man1/dl3d.1.gz").returncode
        == 0
    )
    _in_root(root, "mkdir -p /var/lib/dl3 && touch /var/lib/dl3/flows")
    gone = _in_root(root, "apt-get purge -q -y dl3 dl3d dl3gen && rm -r /packages && find / -xdev -name '*dl3*'")
    assert gone.returncode == 0, gone.stderr
    assert [line for line in gone.stdout.splitlines() if line.startswith("/")] == []
