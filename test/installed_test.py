"""The installed packages under systemd, which boots a clean Debian 12 and 13 in namespaces; test/installed/ runs inside.

A BGP session over a TAP interface outlives ten restarts and ten crashes, and no route leaves the kernel.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.booted import boot
from harness.packages import SUITES, install, make_root
from harness.wired import TOP

SYSTEM = ("systemd-sysv", "dbus", "iproute2", "bird2", "ethtool", "kmod", "procps")
PATIENCE_S = 3600.0  # only ends what hangs: systemd alone waits for a minute

pytestmark = [pytest.mark.long, pytest.mark.alone]  # minutes on all cores


@pytest.mark.parametrize("suite", SUITES)
def systemd_runs_the_installed_service(
    suite: str, packages_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    make_root(suite, packages_of(suite), root, SYSTEM)
    install(root)
    shutil.rmtree(root / "packages")
    shutil.copytree(TOP / "test" / "installed", root / "opt" / "installed")
    status, text = boot(root, "cd /opt; python3 -B -m installed.service", PATIENCE_S)
    with capsys.disabled():
        print(f"\n  Debian {suite}, booted:\n{text}")
    assert status == 0, text
    assert "passed: a_purge_leaves_nothing" in text, text
