"""dl3 run replaces itself with dl3d."""

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


def become(tmp_path: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """dl3 run with a dl3d that prints its arguments."""
    fake = tmp_path / "dl3d"
    fake.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
    fake.chmod(0o755)
    command = [sys.executable, "-c", PROGRAM, str(fake), "run", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("status", [0, 1, 2, 7])
def leaves_with_the_status_of_dl3d(status: int, tmp_path: Path) -> None:
    done = become(tmp_path, "router.yaml", "--check", status=status)
    assert done.returncode == status
    assert done.stdout == "router.yaml --check\n"


@pytest.mark.parametrize(
    "words",
    [
        ("router.yaml", "--", "--log-level=8"),
        ("--check", "router.yaml", "--", "--log-level=8"),
        ("-d", "librte_net_mine.so", "router.yaml"),
        ("router.yaml", "--help"),
        ("--example",),
        ("--check",),
        (),
    ],
    ids=" ".join,
)
def gives_all_arguments_to_dl3d_as_they_are(words: tuple[str, ...], tmp_path: Path) -> None:
    assert become(tmp_path, *words).stdout == " ".join(words) + "\n"


def reports_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarder, "BUILT", Path("/nonexistent/dl3d"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Fault, match="run 'make' first"):
        forwarder.program()
