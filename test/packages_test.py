"""Packages for Debian 12 and 13, built in clean roots: two builds are equal, and what is installed works and goes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.packages import SUITES, build, in_root, install, make_root

PROGRAMS = ("dl3", "dl3d", "dl3gen")
ELSEWHERE = {"SOURCE_PATH": "/srv/another/place/dl3-sources", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"}
OTHER_UMASK = 0o077

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes on all cores


@pytest.fixture(scope="module", params=SUITES)
def packages(
    request: pytest.FixtureRequest, packages_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """Suite, and a folder with its packages, which two builds made alike."""
    suite: str = request.param
    first = {path.name: path.read_bytes() for path in packages_of(suite).glob("*.deb")}
    again = build(suite, tmp_path_factory.mktemp(suite) / "again", ELSEWHERE, OTHER_UMASK)
    assert {name.split("_")[0] for name in first} >= set(PROGRAMS)
    assert [name for name in first if first[name] != again.get(name)] == []
    assert first.keys() == again.keys()
    return suite, packages_of(suite)


@pytest.fixture
def root(packages: tuple[str, Path], tmp_path: Path) -> Path:
    """A clean root of the suite, with the packages in /packages."""
    made = tmp_path / "root"
    make_root(*packages, made)
    return made


def installed_programs_work_and_a_purge_leaves_nothing(root: Path) -> None:
    install(root)
    version = in_root(root, "for program in dl3 dl3d dl3gen; do $program --version; done")
    assert version.stdout.split()[::2] == list(PROGRAMS), version.stderr
    check = in_root(
        root,
        "zcat -f /usr/share/doc/dl3d/examples/dl3d.yaml* | sed 's/0000:01:00.\\(.\\)/net_null\\1/' > /tmp/f.yaml;"
        "dl3d --check /tmp/f.yaml",
    )
    assert (check.stderr, "configuration OK" in check.stdout) == ("", True), check.stdout
    groups = in_root(root, "for command in bench show host flow acl; do dl3 $command --help; done")
    assert groups.returncode == 0, groups.stderr
    asked = in_root(root, "dl3 show ports")
    assert asked.returncode == 1
    assert "Traceback" not in asked.stderr
    assert len(asked.stderr.splitlines()) == 1
    assert (
        in_root(root, "test -s /usr/share/man/man1/dl3-show.1.gz && test -s /usr/share/man/man1/dl3d.1.gz").returncode
        == 0
    )
    in_root(root, "mkdir -p /var/lib/dl3 && touch /var/lib/dl3/flows")
    gone = in_root(root, "apt-get purge -q -y dl3 dl3d dl3gen && rm -r /packages && find / -xdev -name '*dl3*'")
    assert gone.returncode == 0, gone.stderr
    assert [line for line in gone.stdout.splitlines() if line.startswith("/")] == []
