"""What needs a kernel with VLAN and VRF: Debian's own, in a guest. The tests themselves are in test/guest/."""

import re
import subprocess

import pytest
from harness.guest import run_in_guest
from harness.house import TOP

PATIENCE_S = 600.0


@pytest.mark.parametrize("file", sorted(path.name for path in (TOP / "test" / "guest").glob("*.py")))
def a_guest_passes(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["make", "-s", "portable"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    command = f"build/venv/bin/python -m pytest -p no:cacheprovider test/guest/{file}"
    status, text = run_in_guest(f"modprobe tun; export DL3_BUILD=build-portable; {command}", PATIENCE_S)
    with capsys.disabled():
        print(f"\n  {file} in a guest: {text.splitlines()[-2]}")
    assert status == 0, text
    assert re.search(r"\d+ passed", text), text
