"""Tests that need a kernel with VLAN, VRF and bonding: Debian's own, in a guest. The tests are in test/guest/."""

import re
import subprocess

import pytest
from harness.guest import run_in_guest
from harness.wired import TOP

PATIENCE_S = 3600.0  # only ends what hangs: emulation is slow beside other work


@pytest.mark.long
def a_guest_passes(capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["make", "-s", "portable"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    files = " ".join(sorted(f"test/guest/{path.name}" for path in (TOP / "test" / "guest").glob("*.py")))
    command = f"build/venv/bin/python -m pytest -p no:cacheprovider {files}"
    status, text = run_in_guest(f"modprobe tun; export DL3_BUILD=build-portable; {command}", PATIENCE_S)
    with capsys.disabled():
        print(f"\n  {files} in a guest: {text.splitlines()[-2]}")
    assert status == 0, text
    assert re.search(r"\d+ passed", text), text
