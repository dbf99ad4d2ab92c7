"""dl3 run becomes dl3d."""

import subprocess
import sys
from pathlib import Path

import pytest

from dl3.cli import forwarder
from dl3.model.fault import Fault

PROGRAM = """
import sys
from pathlib import Path
from dl3.cli import forwarder, main
forwarder.BUILT = Path(sys.argv.pop(1))
main.main()
"""


@pytest.mark.parametrize("status", [0, 1, 2, 7])
def leaves_with_the_status_of_dl3d(status: int, tmp_path: Path) -> None:
    fake = tmp_path / "dl3d"
    fake.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
    fake.chmod(0o755)
    command = [sys.executable, "-c", PROGRAM, str(fake), "run", "router.yaml", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status
    assert done.stdout == "--check router.yaml\n"


def says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarder, "BUILT", Path("/nonexistent/dl3d"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Fault, match="run 'make' first"):
        forwarder.program()
