"""The single function through which the lab runs other programs; never through a shell."""

import subprocess
from collections.abc import Sequence

from dl3.model.fault import Fault


def run(command: Sequence[str], timeout_s: float = 60.0) -> str:
    """Run a command to completion and return its output; Fault with its error if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except FileNotFoundError as error:
        raise Fault(f"'{command[0]}' is not installed; run tools/install-deps demo") from error
    except subprocess.TimeoutExpired as error:
        raise Fault(f"'{' '.join(command)}' took longer than {timeout_s:.0f} s") from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Fault(f"'{' '.join(command)}' failed with status {done.returncode}: {words}")
    return done.stdout
